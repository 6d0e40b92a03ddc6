! SPDX-License-Identifier: GPL-2.0-or-later
! A function of a module, which runs for some time.
module inner
  implicit none
  integer(8), volatile :: total = 0
contains
  subroutine middle(rounds)
    integer, intent(in) :: rounds
    integer :: i, j
    do i = 1, rounds
      do j = 1, 20000
        total = total + i
      end do
    end do
  end subroutine middle
end module inner

program places
  use inner
  implicit none
  call middle(20000)
end program places
