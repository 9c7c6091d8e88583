"""technology.export_klayout through its command line."""

from layoutkit.technology.technology_files import SHIPPED

SCRIPT = "technology-files/scripts/export_klayout.py"


def test_a_package_is_written_and_reported(tmp_path, run_script):
    code, envelope = run_script(SCRIPT, "--technologies", '["sky130A", "generic"]', "--output-dir", "package")
    assert code == 0
    data = envelope["data"]
    assert data["output_dir"] == str(tmp_path / "package")
    assert data["libraries"] == ["analog_sky130A", "analog_generic"]
    for name in data["files"]:
        assert (tmp_path / "package" / name).is_file()
    assert [p.rsplit("/", 1)[1] for p in data["layer_properties"]] == ["generic.lyp", "sky130A.lyp"]


def test_unknown_technologies_and_bad_folders_are_refused(tmp_path, run_script):
    (tmp_path / "file").write_text("x")
    for technology, folder, words in (("gf13", "p", "unknown technology"), ("generic", "file", "file")):
        code, envelope = run_script(SCRIPT, "--technologies", f'["{technology}"]', "--output-dir", folder)
        assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
        assert words in envelope["error"]["message"]


def test_a_technology_whose_name_is_a_path_writes_no_file_elsewhere(tmp_path, run_script):
    text = (SHIPPED / "generic.yaml").read_text(encoding="utf-8")
    for name in ("../../../elsewhere/evil", "/evil", "..", "a/b", ""):
        (tmp_path / "own.yaml").write_text(text.replace("technology: generic", f"technology: {name!r}", 1))
        code, envelope = run_script(SCRIPT, "--technologies", '["own.yaml"]', "--output-dir", "deep/package")
        assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
        assert "technology: must be a name" in envelope["error"]["message"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.yaml"]
