//! Real servers and real clients for the tests: etcd, kube-apiserver, PostgreSQL, `kubectl`, an OCI
//! registry, NATS and Muster itself as processes on private ports, an HTTPS client that sends a request
//! exactly as written, and a proxy that brings a network's faults between a client and a server.
//! Nothing here pretends: a test that cannot find its server fails and says how to get it.
//! Start reading at [`kubernetes::Kubernetes`], [`registry::Registry`], [`muster::Muster`]
//! and [`installation::Installation`].

pub mod accessibility;
pub mod balancer;
pub mod binaries;
pub mod bolt;
pub mod browser;
pub mod certificates;
pub mod crowd;
pub mod debian;
pub mod definitions;
pub mod etcd;
pub mod helm;
pub mod http;
pub mod installation;
pub mod kubeconfig;
pub mod kubectl;
pub mod kubernetes;
pub mod layout;
pub mod measure;
pub mod muster;
pub mod nats;
pub mod policies;
pub mod port;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod push;
pub mod registry;
pub mod storage;
pub mod token;
pub mod wait;
pub mod watch;
