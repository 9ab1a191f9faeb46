// SPDX-License-Identifier: Apache-2.0
//
// The same messages by MPICH, whose compiler wrapper and header are others.
#include "peers/peer_mpi_pingpong.cpp"
