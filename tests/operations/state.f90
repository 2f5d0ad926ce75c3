! SPDX-License-Identifier: MIT
!> Files and checkpoints, and back
module state
   use ftn_pytorch
   use seen
   implicit none
   private

   public :: keep

contains

   subroutine keep()
      theme = "keep"
      call model%save("", stat=stat, errmsg=errmsg)
      call saw("save: no name")
      call model%save(".", stat=stat, errmsg=errmsg)
      call saw("save: a folder")
      call model%save(here // "there/is/none", stat=stat, errmsg=errmsg)
      call saw("save: no folder")
      call model%save(here // "saved", stat=stat, errmsg=errmsg)
      call saw("save")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: after saving")
      call model%train([torch_in(x)], [torch_in(y)], loss, stat=stat, errmsg=errmsg)
      call saw("train: after saving")
      step = -7
      call model%restore(here // "saved", found=step, stat=stat, errmsg=errmsg)
      number = step
      call saw("restore")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: after restoring")
      call model%restore(here // "saved", step=4, stat=stat, errmsg=errmsg)
      call saw("restore: a step of a file")
      call model%restore("", stat=stat, errmsg=errmsg)
      call saw("restore: no name")
      call model%restore("/dev/null", stat=stat, errmsg=errmsg)
      call saw("restore: nothing in it")
      call model%restore(here // "there_is_none", stat=stat, errmsg=errmsg)
      call saw("restore: no file")
      call model%restore(here // "other.pt", stat=stat, errmsg=errmsg)
      call saw("restore: another model")
      call model%restore(here // "other.ftr", stat=stat, errmsg=errmsg)
      call saw("restore: another recording")
      call model%restore(here // "settings.py", stat=stat, errmsg=errmsg)
      call saw("restore: a script")
      call model%checkpoint("", stat=stat, errmsg=errmsg)
      call saw("checkpoint: no name")
      call model%checkpoint(here // "settings.py", stat=stat, errmsg=errmsg)
      call saw("checkpoint: a file")
      call model%checkpoint(here // "folder", keep=0, stat=stat, errmsg=errmsg)
      call saw("checkpoint: keep none")
      call model%checkpoint(here // "folder", step=-5, stat=stat, errmsg=errmsg)
      call saw("checkpoint: a step below zero")
      call model%checkpoint(here // "folder", step=5, stat=stat, errmsg=errmsg)
      call saw("checkpoint: 5")
      call model%checkpoint(here // "folder", step=5, stat=stat, errmsg=errmsg)
      call saw("checkpoint: 5 again")
      call model%checkpoint(here // "folder", step=4, stat=stat, errmsg=errmsg)
      call saw("checkpoint: 4")
      call model%restore(here // "folder", step=3, stat=stat, errmsg=errmsg)
      call saw("restore: 3")
      step = -1
      call model%restore(here // "folder", step=5, fallback=.true., found=step, stat=stat, errmsg=errmsg)
      number = step
      call saw("restore: 5")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: restored")
   end subroutine keep
end module state
