"""Boxes in the format of the MOT challenge: read, written, and refused with the number of the line."""

import gzip

import numpy as np
import pytest

from nashlearn.datasets import Boxes, load_tracking, read_mot, tracking_names, write_mot

# frames, annotated boxes, people, most in a frame, detections: Table XI of Fathony (2019) and the files' own counts
VIDEOS = {
    "TUD-Campus": (71, 359, 8, 6, 322),
    "TUD-Stadtmitte": (179, 1156, 10, 8, 1129),
    "ETH-Sunnyday": (354, 1901, 30, 9, 1123),
    "ETH-Bahnhof": (1000, 7670, 223, 17, 6817),
    "ETH-Pedcross2": (837, 6758, 151, 15, 1438),
}

BOXES = Boxes(
    np.array([2, 1, 1, 4]),
    np.array([7, 7, -1, 0]),
    np.array([[1.0, 2.0, 3.0, 4.0], [0.5, -2.25, 1e-3, 4.0], [10.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0]]),
    np.array([1.0, 0.0, -3.5, 42.848]),
)


@pytest.mark.data
@pytest.mark.parametrize("name", tracking_names())
def test_videos_are_as_published(name):
    video = load_tracking(name)
    truth = video.truth
    sizes = [rows.size for rows in truth.rows_by_frame()]
    found = (len(sizes), len(truth), np.unique(truth.id).size, max(sizes), len(video.detections))
    assert found == VIDEOS[name]
    assert (video.detections.id == -1).all()
    assert len(video.thumbs) == len(video.hist) == len(video.inside) == len(truth)
    assert 0 <= video.inside.min() <= video.inside.max() <= 1


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_what_is_written_is_read(tmp_path, suffix):
    path = tmp_path / f"boxes{suffix}"
    write_mot(path, BOXES)
    again = read_mot(path)
    for what in ("frame", "id", "box", "confidence"):
        assert np.array_equal(getattr(again, what), getattr(BOXES, what))


def test_annotations_with_class_and_visibility(tmp_path):
    """As the challenges from MOT16 on have them."""
    (tmp_path / "gt.txt").write_text("1,2,912,484,97,109,0,7,1\n2,2,912,484,97,109,1,1,0.86\n")
    found = read_mot(tmp_path / "gt.txt")
    assert found.confidence.tolist() == [0, 1] and found.box[0].tolist() == [912, 484, 97, 109]


def test_boxes_are_found_by_frame():
    assert [rows.tolist() for rows in BOXES.rows_by_frame()] == [[1, 2], [0], [], [3]]
    assert [rows.tolist() for rows in BOXES.rows_by_frame([2, 9])] == [[0], []]
    assert BOXES[BOXES.confidence > 0].frame.tolist() == [2, 4]
    with pytest.raises(ValueError, match="one for each box"):
        BOXES.with_ids(np.array([1]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one box"),
        ("\n \n", "at least one box"),
        ("1,1,0,0,5,5,1\n1,2,0,0,5,5\n", "line 2: 6 fields; a box has 7, 9 \\(class, visibility\\) or 10"),
        ("1,1,0,0,5,5,1\n\n1,2,zero,0,5,5,1\n", "line 3: .*zero"),
        ("0,1,0,0,5,5,1\n", "line 1: frames are integers from 1 to 10000000; got '0'"),
        ("1.5,1,0,0,5,5,1\n", "frames are integers"),
        ("1,-2,0,0,5,5,1\n", "ids are integers from 0 to 9007199254740992, or -1"),
        ("1,1,0,0,0,5,1\n", "width and height must be positive; got '0' and '5'"),
        ("1,1,0,0,5,nan,1\n", "line 1: numbers must be finite"),
        ("1,3,0,0,5,5,1\n2,3,0,0,5,5,1\n1,3,9,9,5,5,1\n", "line 3: object 3 has a box in frame 1 already, in line 1"),
    ],
)
def test_broken_files(tmp_path, text, message):
    (tmp_path / "gt.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_mot(tmp_path / "gt.txt")


def test_broken_archives(tmp_path):
    (tmp_path / "gt.txt.gz").write_bytes(b"1,1,0,0,5,5,1")
    with pytest.raises(ValueError, match="not a gzipped text file"):
        read_mot(tmp_path / "gt.txt.gz")
    (tmp_path / "gt.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not a text file"):
        read_mot(tmp_path / "gt.txt")


def test_appearance_must_fit_the_boxes(tmp_path, monkeypatch):
    monkeypatch.setenv("NASHLEARN_DATA", str(tmp_path))
    folder = tmp_path / "tracking"
    folder.mkdir()
    for kind in ("gt", "det"):
        (folder / f"TUD-Campus.{kind}.txt.gz").write_bytes(gzip.compress(b"1,-1,0,0,5,5,1\n"))
    with pytest.raises(ValueError, match="No video is called 'TUD'; choose from TUD-Campus"):
        load_tracking("TUD")
    with pytest.raises(FileNotFoundError, match="gt_appearance"):
        load_tracking("TUD-Campus")
    looks = {"thumbs": np.zeros((1, 16, 8, 3)), "hist": np.zeros((1, 3, 3, 8))}
    np.savez(folder / "TUD-Campus.gt_appearance.npz", **looks)
    with pytest.raises(ValueError, match="inside are absent"):
        load_tracking("TUD-Campus")
    np.savez(folder / "TUD-Campus.gt_appearance.npz", inside=np.zeros(2), **looks)
    with pytest.raises(ValueError, match="2 entries of inside for 1 boxes"):
        load_tracking("TUD-Campus")
