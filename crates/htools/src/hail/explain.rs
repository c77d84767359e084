//! Why an instance goes where it goes (`--explain`).

use cluster::Cluster;

use crate::iallocator::AllocateRequest;
use crate::io::Io;
use crate::options::Options;

pub(super) fn allocation(_c: &Cluster, _w: &AllocateRequest, _o: &Options, _io: &mut Io<'_>) {}
