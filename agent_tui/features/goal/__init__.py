"""``/goal``: work turn after turn until every check passes and a judge agrees."""
