# SPDX-License-Identifier: Apache-2.0
@0xb1d4c8f27a5e9036;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("bench::schema");

interface Peer {
  # Answers with as many bytes as came.
  echo @0 (bytes :Data) -> (bytes :Data);
}
