//! Sockets on loopback that answer as an agent would, or should not.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

/// An agent that treats each connection in its own way, once its request has been read.
pub(crate) fn agent(treat: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an ephemeral port");
    let address = listener.local_addr().expect("bound").to_string();
    serve(listener, treat);
    address
}

pub(crate) fn serve(listener: TcpListener, treat: impl Fn(TcpStream) + Send + Sync + Clone + 'static) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let treat = treat.clone();
            thread::spawn(move || {
                let mut stream = stream.expect("a connection");
                let mut request = Vec::new();
                let mut chunk = [0; 1024];
                while !request.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut chunk) {
                        Ok(count) if count > 0 => request.extend(chunk.iter().take(count)),
                        _ => return,
                    }
                }
                treat(stream);
            });
        }
    });
}

/// An address that nobody listens on.
pub(crate) fn absent() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an ephemeral port")
}

pub(crate) fn answer(mut stream: TcpStream, status: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    // The hook may have gone.
    drop(stream.write_all(format!("{head}{body}").as_bytes()));
}
