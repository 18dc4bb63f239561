from estimator_tpu_embedding.core.rates import ConstantRate, DynamicRate, rate_tags


def test_tags_follow_the_order_of_first_appearance_and_are_shared_by_function():
    first, second = DynamicRate(function=abs), DynamicRate(function=round)
    rates = [second, ConstantRate(value=0.1), first, second]
    assert rate_tags(rates) == {second: 0, first: 1}


def test_a_rate_of_zero_is_a_value():
    assert list(ConstantRate(value=0.0).problems('x')) == []
