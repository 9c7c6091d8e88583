"""The digests that a report states are read back, whatever bytes follow them."""

from layoutkit.layout.reports import LAYOUT, noted, sources_of

PNG_HEAD = b"\x89PNG\r\n\x1a\n" + bytes(25)


def test_the_digest_in_a_picture_is_read_also_where_its_checksum_begins_with_a_hexadecimal_digit(tmp_path):
    after = set()
    for number in range(300):
        digest = f"{number:064x}"
        picture = noted(PNG_HEAD, {LAYOUT: digest})
        after.add(picture[picture.index(digest.encode()) + len(digest)])
        (tmp_path / "layout.png").write_bytes(picture)
        assert sources_of(tmp_path / "layout.png") == {LAYOUT: digest}
    assert after & set(b"0123456789abcdef")
