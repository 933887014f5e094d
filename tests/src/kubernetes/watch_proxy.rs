//! Between one kube-proxy and the API server: passes everything on, and can hold back the watch and the lists of one
//! resource while the others go on. With this a kube-proxy writes its rules, stamps them, and has not heard of a change.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    thread::JoinHandle,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode, body::Frame, body::Incoming, header, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use kube::{Client, client::Body, config::Kubeconfig};
use tokio::{
    sync::{oneshot, watch},
    task::LocalSet,
};

use super::api;
use crate::{Host, host::runtime};

type Answer = UnsyncBoxBody<Bytes, std::io::Error>;

/// A proxy in a node's namespace. Dropped, it is gone.
#[derive(Debug)]
pub struct WatchProxy {
    address: SocketAddr,
    /// The resource that stands still.
    stalled: watch::Sender<Option<String>>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

// === impl WatchProxy ===

impl WatchProxy {
    /// Starts it in a host, with a client's file for the API server.
    pub(crate) fn start(host: &Host, kubeconfig: &Path) -> Result<Self> {
        let config =
            Kubeconfig::read_from(kubeconfig).with_context(|| format!("{} cannot be read", kubeconfig.display()))?;
        let listener = host
            .run(|| {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                listener.set_nonblocking(true)?;
                std::io::Result::Ok(listener)
            })
            .with_context(|| format!("no watch proxy in {}", host.role()))?;
        let address = listener.local_addr()?;
        let (stalled, stall) = watch::channel(None);
        let (end, ended) = oneshot::channel();
        let thread = host.spawn("watch proxy", move || {
            runtime().block_on(LocalSet::new().run_until(async {
                tokio::select! {
                    served = serve(listener, config, stall) => if let Err(error) = served {
                        eprintln!("the watch proxy: {error:#}");
                    },
                    _ = ended => {}
                }
            }));
        })?;
        Ok(Self { address, stalled, end: Some(end), thread: Some(thread) })
    }

    /// Where the kube-proxy finds it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Holds back everything of a resource, such as `endpointslices`, from now on.
    pub fn stall(&self, resource: &str) {
        self.stalled.send_replace(Some(resource.to_owned()));
    }

    /// Lets what was held back go, in its order.
    pub fn release(&self) {
        self.stalled.send_replace(None);
    }
}

impl Drop for WatchProxy {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end.send(()).ok(); // it may have ended with an error
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the thread of the watch proxy panicked");
        }
    }
}

async fn serve(listener: TcpListener, config: Kubeconfig, stalled: watch::Receiver<Option<String>>) -> Result<()> {
    let client = api::client(config).await?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (client, stalled) = (client.clone(), stalled.clone());
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| pass(client.clone(), stalled.clone(), request));
            // A kube-proxy that is killed breaks it.
            http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

async fn pass(
    client: Client,
    mut stalled: watch::Receiver<Option<String>>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, Infallible> {
    let resource = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    go(&mut stalled, &resource).await;
    let (mut head, body) = request.into_parts();
    head.headers.remove(header::HOST);
    head.headers.remove(header::ACCEPT_ENCODING); // the client would unpack what the kube-proxy is told is packed
    let answer = async {
        let body = body.collect().await?.to_bytes();
        anyhow::Ok(client.send(Request::from_parts(head, Body::from(body.to_vec()))).await?)
    };
    Ok(match answer.await {
        Ok(answer) => {
            let (mut head, body) = answer.into_parts();
            head.headers.remove(header::TRANSFER_ENCODING); // this hop's own
            Response::from_parts(head, hold_back(body, stalled, resource))
        }
        Err(error) => {
            let text = Bytes::from(format!("{error:#}"));
            let mut answer =
                Response::new(http_body_util::Full::new(text).map_err(|never| match never {}).boxed_unsync());
            *answer.status_mut() = StatusCode::BAD_GATEWAY;
            answer
        }
    })
}

/// The body, piece by piece, with none while the resource stands still.
fn hold_back(body: Body, stalled: watch::Receiver<Option<String>>, resource: String) -> Answer {
    let pieces = futures_util::stream::unfold((body, stalled, resource), |(mut body, mut stalled, resource)| async {
        let piece = body.frame().await?;
        go(&mut stalled, &resource).await;
        let piece = piece.map_err(std::io::Error::other).map(|frame| match frame.into_data() {
            Ok(data) => Frame::data(data),
            Err(other) => other,
        });
        Some((piece, (body, stalled, resource)))
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// Waits while the resource stands still.
async fn go(stalled: &mut watch::Receiver<Option<String>>, resource: &str) {
    // Without a sender the proxy is about to end.
    stalled.wait_for(|stalled| stalled.as_deref() != Some(resource)).await.ok();
}
