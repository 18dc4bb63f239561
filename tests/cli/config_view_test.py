from harness.commands import config_of, view
from hypothesis import given
from hypothesis import strategies as st

from estimator_tpu_embedding.cli.config_view import TableView
from estimator_tpu_embedding.cli.etpe_plan import per_host, rows_per_host
from estimator_tpu_embedding.core.optimizers import OPTIMIZERS
from estimator_tpu_embedding.core.partition import STRATEGIES, Partition


def test_every_algorithm_of_the_proto_is_shown():
    config = config_of()
    parameters = config.table_descriptor[0].optimization_parameters
    slots = {}
    for field in parameters.DESCRIPTOR.oneofs_by_name['parameters'].fields:
        getattr(parameters, field.name).SetInParent()
        table = view(config).tables[0]
        assert table.optimizer == field.name
        slots[field.name] = None if table.slots is None else len(table.slots)
    # The numbers of inputs of TensorFlow's load ops, without the table itself.
    assert {name: slots[name] for name in OPTIMIZERS} == {
        'stochastic_gradient_descent': 0, 'adagrad': 1, 'adagrad_momentum': 2,
        'proximal_adagrad': 1, 'adam': 2, 'ftrl': 2, 'momentum': 1, 'rms_prop': 2,
        'proximal_yogi': 2, 'frequency_estimator': 1, 'adadelta': 2, 'centered_rms_prop': 3,
        'lion': 1}
    assert {name: count for name, count in slots.items() if name not in OPTIMIZERS} == {
        'mdl_adagrad_light': None, 'online_yogi': None, 'bounded_adagrad': None,
        'frequency_aware_adagrad': None,
        'user_defined_program': None, 'assign': None}


def test_fields_are_shown_where_they_are_not_the_default():
    config = config_of()
    adam = config.table_descriptor[0].optimization_parameters.adam
    adam.beta1, adam.beta2, adam.epsilon, adam.use_sum_inside_sqrt = 0.9, 0.99, 1e-8, True
    config.profile_data_directory = '/p'
    config.spmd_sharding.num_cores_per_replica = 2
    parameters = config.table_descriptor[0].optimization_parameters
    parameters.hot_id_replication_configuration.status = 1
    parameters.simulated_quantization.num_buckets = 16
    parameters.low_dimensional_packing_status = 1
    config.table_descriptor[1].num_features = 3
    shown = view(config)
    assert shown.settings == {'pipelined': True, 'profile_data_directory': '/p',
                              'spmd_sharding': 'num_cores_per_replica: 2'}
    assert shown.tables[0].settings == {
        'beta2': 0.99, 'clip_gradients': (-1.0, 0.0), 'simulated_quantization': 'num_buckets: 16',
        'hot_id_replication': 'status: ENABLED', 'low_dimensional_packing_status': 1}
    assert shown.tables[1].settings['num_features'] == 3


def tables_of(*sizes):
    return [TableView(name=str(rows), rows=rows, dimension=width, slots=())
            for rows, width in sizes]


@given(st.integers(1, 50), st.integers(1, 60), st.sampled_from(STRATEGIES), st.data())
def test_the_arithmetic_is_that_of_the_partition(rows, hosts, strategy, data):
    partition = Partition(strategy=strategy, vocabulary_size=rows, num_hosts=hosts)
    of_host = [len(partition.ids_on(host)) for host in range(hosts)]
    assert per_host(tables_of((rows, 1)), hosts, lambda table: 1) == of_host
    assert rows_per_host(*tables_of((rows, 1)), hosts) == {
        'min': min(of_host), 'max': max(of_host)}
    newest = data.draw(st.integers(1, rows))
    assert partition.hosts_of_newest(newest) == len({
        partition.locate(id, max)[0] for id in range(rows - newest, rows)})
