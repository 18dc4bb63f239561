from estimator_tpu_embedding.cli.codes import ENTRIES


def test_all_codes_are_listed_in_order(etpe):
    lines = etpe('rules').splitlines()
    assert lines[0].split() == ['code', 'severity', 'title']
    assert [line.split()[0] for line in lines[1:]] == sorted(ENTRIES)
    rules = etpe.json('rules')['rules']
    assert {'code': 'W410', 'severity': 'warning', 'title': 'padding wastes memory'} in rules
    assert len(rules) == len(ENTRIES)
