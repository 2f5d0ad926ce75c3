# SPDX-License-Identifier: MIT
"""The recipe of hosts/dales on sources that have the places it looks for, and on sources that do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hosts_run import ROOT

DALES = ROOT / "hosts" / "dales"
# The places alone, in another spelling
SOURCES = {
    "modsubgrid.f90": """\
module modsubgrid
  USE modsubgriddata   ! what it needs
contains
  subroutine exitsubgrid
    implicit none
  end subroutine
  subroutine closure
    if (smagorinsky) then
      do k = 1,kmax
        zlt(i,j,k)=delta(k)
      end do
    else
      do k = 1, kmax
        do j
          do i
            zlt(i,j,k) = delta(k)
            if ( dthvdz(i,j,k)>0 ) then
              zlt(i,j,k) = 1
            endif
            ekm(i,j,k) = zlt(i,j,k)
          enddo
        enddo
      enddo
    end if
  end subroutine closure
end module
""",
    "modstartup.f90": """\
module modstartup
implicit none
contains
  subroutine startup(path)
    implicit none
    call readinitfiles ! moved
  end subroutine startup
  subroutine do_writerestartfiles
    implicit none
    close (1)
  end subroutine do_writerestartfiles
end module
""",
    "CMakeLists.txt": "set(target_lib dales)\nadd_library(${target_lib} all.f90)\n",
}
COUPLED = """\
module modsubgrid
  USE modsubgriddata   ! what it needs
  use modlearn, only : exitlearn, learn_length, predict_length, predicts
contains
  subroutine exitsubgrid
    implicit none
    call exitlearn
  end subroutine
  subroutine closure
    if (smagorinsky) then
      do k = 1,kmax
        zlt(i,j,k)=delta(k)
      end do
    else
      if (predicts) call predict_length
      do k = 1, kmax
        do j
          do i
            if (.not. predicts) then
            zlt(i,j,k) = delta(k)
            if ( dthvdz(i,j,k)>0 ) then
              zlt(i,j,k) = 1
            endif
            end if
            ekm(i,j,k) = zlt(i,j,k)
          enddo
        enddo
      enddo
      call learn_length
    end if
  end subroutine closure
end module
"""


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "src").mkdir()
    for name, text in SOURCES.items():
        (tmp_path / "src" / name).write_text(text)
    return tmp_path


def couple(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, DALES / "couple.py", checkout], capture_output=True, text=True, check=False)


def test_lines_go_where_they_belong(checkout):
    done = couple(checkout)
    counts = {"modsubgrid.f90": 6, "modstartup.f90": 3, "CMakeLists.txt": 2}
    said = [f"src/{name}: {count} lines" for name, count in counts.items()]
    assert (done.returncode, done.stdout.splitlines()) == (0, [*said, "src/modlearn.f90: new"]), done.stderr
    source = checkout / "src"
    assert (source / "modsubgrid.f90").read_text() == COUPLED
    assert (source / "modlearn.f90").read_text() == (DALES / "modlearn.f90").read_text()
    for name, count in counts.items():
        ours, theirs = (source / name).read_text().splitlines(), SOURCES[name].splitlines()
        assert len(ours) == len(theirs) + count and [line for line in ours if line in theirs] == theirs
    cmake = (source / "CMakeLists.txt").read_text().splitlines()
    assert cmake[1:3] == ["find_package(ftn_pytorch REQUIRED)", "link_libraries(ftn_pytorch::ftn_pytorch)"]


@pytest.mark.parametrize(
    "name, old, new, text",
    [
        ("modstartup.f90", "call readinitfiles", "call read", '"call readinitfiles" stands there 0 times, not once'),
        ("modsubgrid.f90", "dthvdz", "gradient", 'subroutine closure: "if (dthvdz(i,j,k) > 0) then" stands there 0'),
        ("modsubgrid.f90", "enddo", "continue", 'there is no "end do" behind "if (dthvdz(i,j,k) > 0) then"'),
        ("modsubgrid.f90", "do k", "do m", 'there is no "do k=1,kmax" before "if (dthvdz(i,j,k) > 0) then"'),
        ("modsubgrid.f90", "subroutine closure", "subroutine other", "src/modsubgrid.f90 has no subroutine closure"),
        ("CMakeLists.txt", "dales)", "les)", 'at the top: "set(target_lib dales)" stands there 0 times'),
        ("CMakeLists.txt", None, None, "has no src/CMakeLists.txt"),
    ],
)
def test_other_sources_are_refused_and_stay(checkout, name, old, new, text):
    path = checkout / "src" / name
    if old is None:
        path.unlink()
    else:
        path.write_text(path.read_text().replace(old, new))
    before = {each: each.read_text() for each in checkout.glob("src/*")}
    done = couple(checkout)
    assert done.returncode == 1 and text in done.stderr and "Nothing was changed" in done.stderr
    assert {each: each.read_text() for each in checkout.glob("src/*")} == before


def test_a_coupled_checkout_is_refused(checkout):
    assert couple(checkout).returncode == 0
    done = couple(checkout)
    assert done.returncode == 1 and "this checkout is coupled already" in done.stderr
