# SPDX-License-Identifier: Apache-2.0
#
# Toolchain for aarch64, compiled elsewhere and run under qemu-user: the preset aarch64. Debian and
# Ubuntu have it as the packages g++-aarch64-linux-gnu and qemu-user.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc) # GoogleTest's project asks for one
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_ASM_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

# fmt is used as headers, which are this machine's as much as the other's; its package files lie
# where only native builds look.
set(fmt_DIR "/usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake/fmt"
    CACHE PATH "Where fmt's package files are")
