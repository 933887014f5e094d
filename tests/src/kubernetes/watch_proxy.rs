//! Between one client (a kube-proxy, an agent) and the API server: passes everything on, can hold back the watch and the lists
//! of one resource while the others go on, and can let its watches expire, as an API server does that has forgotten their place
//! (410). With this a kube-proxy writes its rules, stamps them, and has not heard of a change.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
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

/// What passes.
#[derive(Clone, Debug, Default)]
struct Flow {
    /// The resource that stands still.
    stalled: Option<String>,
    /// The resource whose watches have expired, until it is listed again.
    expired: Option<String>,
    /// How often watches have expired: those of before are over.
    expiries: u64,
}

/// A proxy in a node's namespace. Dropped, it is gone.
#[derive(Debug)]
pub struct WatchProxy {
    address: SocketAddr,
    flow: Arc<watch::Sender<Flow>>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

// === impl WatchProxy ===

impl WatchProxy {
    /// Starts it at an address of a host, with a client's file for the API server.
    pub(crate) fn start(host: &Host, address: Ipv4Addr, kubeconfig: &Path) -> Result<Self> {
        let config =
            Kubeconfig::read_from(kubeconfig).with_context(|| format!("{} cannot be read", kubeconfig.display()))?;
        let listener = host
            .run(|| {
                let listener = TcpListener::bind((address, 0))?;
                listener.set_nonblocking(true)?;
                std::io::Result::Ok(listener)
            })
            .with_context(|| format!("no watch proxy in {}", host.role()))?;
        let address = listener.local_addr()?;
        let flow = Arc::new(watch::Sender::new(Flow::default()));
        let flowing = Arc::clone(&flow);
        let (end, ended) = oneshot::channel();
        let thread = host.spawn("watch proxy", move || {
            runtime().block_on(LocalSet::new().run_until(async {
                tokio::select! {
                    served = serve(listener, config, flowing) => if let Err(error) = served {
                        eprintln!("the watch proxy: {error:#}");
                    },
                    _ = ended => {}
                }
            }));
        })?;
        Ok(Self { address, flow, end: Some(end), thread: Some(thread) })
    }

    /// Where the client finds it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Holds back everything of a resource, such as `endpointslices`, from now on.
    pub fn stall(&self, resource: &str) {
        self.flow.send_modify(|flow| flow.stalled = Some(resource.to_owned()));
    }

    /// Lets what was held back go, in its order.
    pub fn release(&self) {
        self.flow.send_modify(|flow| flow.stalled = None);
    }

    /// Ends the watches of a resource, and refuses new ones with 410 until it is listed. What was held back is lost.
    pub fn expire(&self, resource: &str) {
        self.flow.send_modify(|flow| {
            let resource = Some(resource.to_owned());
            *flow = Flow { stalled: None, expired: resource, expiries: flow.expiries + 1 };
        });
    }

    /// Whether a watch has expired, and the resource has not been listed since.
    pub fn is_expired(&self) -> bool {
        self.flow.borrow().expired.is_some()
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

async fn serve(listener: TcpListener, config: Kubeconfig, flow: Arc<watch::Sender<Flow>>) -> Result<()> {
    let client = api::client(config).await?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (client, flow) = (client.clone(), Arc::clone(&flow));
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| pass(client.clone(), Arc::clone(&flow), request));
            // A kube-proxy that is killed breaks it.
            http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

async fn pass(
    client: Client,
    flow: Arc<watch::Sender<Flow>>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, Infallible> {
    let resource = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let query = request.uri().query().unwrap_or_default();
    let says = |parameter: &str| query.split('&').any(|part| part == parameter);
    let watches = says("watch=true") || says("watch=1");
    // A client that can has a list streamed to it as the beginning of a watch.
    let goes_on = watches && !says("sendInitialEvents=true");
    let mut flowing = flow.subscribe();
    go(&mut flowing, &resource).await;
    let began = flow.borrow().expiries;
    if flow.borrow().expired.as_ref() == Some(&resource) {
        if goes_on {
            return Ok(answer(StatusCode::GONE, EXPIRED));
        }
        // A read of metadata alone is no list that a watch goes on from.
        let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        if !accept.is_some_and(|accept| accept.contains("PartialObjectMetadata")) {
            flow.send_modify(|flow| flow.expired = None);
        }
    }
    let (mut head, body) = request.into_parts();
    head.headers.remove(header::HOST);
    head.headers.remove(header::ACCEPT_ENCODING); // the client would unpack what the kube-proxy is told is packed
    let passed = async {
        let body = body.collect().await?.to_bytes();
        anyhow::Ok(client.send(Request::from_parts(head, Body::from(body.to_vec()))).await?)
    };
    Ok(match passed.await {
        Ok(passed) => {
            let (mut head, body) = passed.into_parts();
            head.headers.remove(header::TRANSFER_ENCODING); // this hop's own
            let body = Held { body, flow: flowing, resource, began: watches.then_some(began) }.pieces();
            Response::from_parts(head, body)
        }
        Err(error) => answer(StatusCode::BAD_GATEWAY, &format!("{error:#}")),
    })
}

/// What an API server says of a place that it has forgotten (`apierrors.NewResourceExpired`).
const EXPIRED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}"#;

fn answer(status: StatusCode, text: &str) -> Response<Answer> {
    let body = http_body_util::Full::new(Bytes::from(text.to_owned())).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    answer
}

/// A body that comes piece by piece, with none while the resource stands still.
struct Held {
    body: Body,
    flow: watch::Receiver<Flow>,
    resource: String,
    /// Of a watch: how often watches had expired when it began.
    began: Option<u64>,
}

impl Held {
    fn pieces(self) -> Answer {
        let pieces = futures_util::stream::unfold(self, |mut held| async {
            let piece = held.piece().await?;
            Some((piece, held))
        });
        StreamBody::new(pieces).boxed_unsync()
    }

    /// The next piece; none at the end, and once the watch has expired.
    async fn piece(&mut self) -> Option<std::io::Result<Frame<Bytes>>> {
        let (mut flow, began, resource) = (self.flow.clone(), self.began, self.resource.clone());
        let expired = async {
            let is_over = |flow: &Flow| {
                flow.expired.as_ref() == Some(&resource) && began.is_some_and(|began| flow.expiries > began)
            };
            // Without a sender the proxy is about to end.
            flow.wait_for(is_over).await.ok();
        };
        let next = async {
            let piece = self.body.frame().await?;
            go(&mut self.flow, &self.resource).await;
            Some(piece)
        };
        let piece = tokio::select! {
            biased;
            () = expired => None,
            piece = next => piece,
        }?;
        Some(piece.map_err(std::io::Error::other).map(|frame| match frame.into_data() {
            Ok(data) => Frame::data(data),
            Err(other) => other,
        }))
    }
}

/// Waits while the resource stands still.
async fn go(flow: &mut watch::Receiver<Flow>, resource: &str) {
    // Without a sender the proxy is about to end.
    flow.wait_for(|flow| flow.stalled.as_deref() != Some(resource)).await.ok();
}
