//! What a cluster's Service is to its replicas: one address, behind which every connection goes to
//! the next replica that takes it.

use anyhow::Result;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// An address in front of several ports of the loopback address; it ends when dropped.
#[derive(Debug)]
pub struct Balancer {
    port: u16,
    replicas: Arc<Mutex<Vec<u16>>>,
    stop: Arc<AtomicBool>,
}

impl Balancer {
    /// Starts one in front of these ports.
    pub fn start(ports: Vec<u16>) -> Result<Balancer> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let turn = Arc::new(AtomicUsize::new(0));
        let replicas = Arc::new(Mutex::new(ports));
        let known = replicas.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let turn = turn.fetch_add(1, Ordering::Relaxed);
                let ports = known.lock().map(|ports| ports.clone()).unwrap_or_default();
                thread::spawn(move || {
                    // Whoever finds no replica sees its connection end.
                    if let Some(server) = connect(&ports, turn) {
                        let _ = join(client, server);
                    }
                });
            }
        });
        Ok(Balancer {
            port,
            replicas,
            stop,
        })
    }

    /// One more replica. A port is told only when somebody is about to take it, and taken back when
    /// they are gone, so that nobody else's server is ever mistaken for a replica.
    pub fn add(&self, port: u16) {
        if let Ok(mut replicas) = self.replicas.lock() {
            replicas.push(port);
        }
    }

    /// A replica is gone for good.
    pub fn remove(&self, port: u16) {
        if let Ok(mut replicas) = self.replicas.lock() {
            replicas.retain(|known| *known != port);
        }
    }

    /// Where clients connect.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn connect(ports: &[u16], turn: usize) -> Option<TcpStream> {
    let others = ports.iter().cycle().skip(turn % ports.len().max(1));
    let mut others = others.take(ports.len());
    others.find_map(|port| TcpStream::connect(("127.0.0.1", *port)).ok())
}

/// Carries bytes both ways until one side ends.
fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (back, forth) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || carry(back, forth));
    carry(client, server);
    Ok(())
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
