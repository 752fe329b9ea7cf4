"""Excerpts of rejects and hashed values: shapes, never what people wrote."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mnemokit.turns.redaction import EXCERPT_CHARS, redact
from mnemokit.turns.values import hashed_values


def test_an_excerpt_keeps_keys_and_shape_only():
    raw = '{"user": "ada@example.com", "phone": 5551234, "ok": true, "list": [null, "x"], "cut": "Ada Love'
    assert redact(raw) == '{"user": "…", "phone": 0, "ok": true, "list": [null, "…"], "cut": "…"'


def test_an_excerpt_of_no_json_keeps_no_words():
    assert redact("Dear diary, call me at +39 055 123") == "… …, … … … +0 0 0"


def test_a_key_that_is_no_plain_name_is_masked():
    assert redact('{"ada@example.com": 1, "Ada Lovelace": 2}') == '{"…": 0, "…": 0}'


@settings(max_examples=200, deadline=None)
@given(
    st.text(min_size=4, alphabet=st.characters(categories=["Ll", "Lu", "Nd"])),
    st.text(max_size=30),
    st.text(max_size=30),
)
def test_a_word_outside_keys_never_shows(secret, before, after):
    secret = f"q{secret}q"
    shown = redact(f'{before} {secret} {after} "{secret}" {{"note": "{secret}"')
    assert secret not in shown
    assert len(shown) <= EXCERPT_CHARS
    assert shown.isprintable()


def test_bytes_that_are_no_text_are_shown_safely():
    shown = redact(b'{"a": "\xff\xfe\x00", \x07')
    assert shown.isprintable()
    assert shown.startswith('{"a": "…"')


def test_hashes_find_equal_values_at_any_depth_within_a_session_only():
    made = hashed_values({"results": [{"id": "C77", "n": 9}]}, "s1")
    assert set(hashed_values({"city_id": "C77"}, "s1")) < set(made)
    assert set(hashed_values('{"count": 9}', "s1")) < set(made)
    assert not set(hashed_values({"city_id": "C77"}, "s2")) & set(made)


def test_values_that_occur_by_chance_do_not_count():
    assert hashed_values([True, False, None, "", "a", 0, 1, -1], "s") == []


def test_a_number_and_its_text_are_one_value():
    assert hashed_values(1234, "s") == hashed_values("1234", "s")
