//! The API server's client, in the control plane's namespace.

use std::{path::Path, sync::Arc, thread::JoinHandle, time::Duration};

use anyhow::{Context, Result, anyhow};
use hyper::{Request, header};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{Host, host::runtime};

/// Longer than the API server ever takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client with every right. Cloning it shares its connection.
#[derive(Clone, Debug)]
pub struct Api(Arc<Connection>);

/// The API server's refusal of a request.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the API server answered {code}: {message}")]
pub struct Refused {
    /// The HTTP status code.
    pub code: u16,
    /// What it said.
    pub message: String,
}

#[derive(Debug)]
struct Connection {
    orders: mpsc::UnboundedSender<Order>,
    thread: Option<JoinHandle<()>>,
}

struct Order {
    request: Request<Vec<u8>>,
    answer: oneshot::Sender<Result<String>>,
}

// === impl Api ===

impl Api {
    /// A client by a kubeconfig, in a host.
    pub(crate) fn connect(host: &Host, kubeconfig: &Path) -> Result<Self> {
        let config =
            Kubeconfig::read_from(kubeconfig).with_context(|| format!("{} cannot be read", kubeconfig.display()))?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let thread = host.spawn("api", move || runtime().block_on(serve(config, inbox)))?;
        Ok(Self(Arc::new(Connection { orders, thread: Some(thread) })))
    }

    /// Gets a resource by its path, such as `/api/v1/nodes`.
    ///
    /// # Errors
    ///
    /// When the API server refuses ([`Refused`]) or does not answer.
    pub fn get(&self, path: &str) -> Result<Value> {
        self.json(Request::get(path), path, None)
    }

    /// Gets what is no JSON, such as `/readyz`.
    ///
    /// # Errors
    ///
    /// When the API server refuses ([`Refused`]) or does not answer.
    pub fn text(&self, path: &str) -> Result<String> {
        self.exchange(Request::get(path), path, Vec::new())
    }

    /// Creates a resource in a collection.
    ///
    /// # Errors
    ///
    /// When the API server refuses ([`Refused`]) or does not answer.
    pub fn post(&self, path: &str, object: &Value) -> Result<Value> {
        self.json(Request::post(path).header(header::CONTENT_TYPE, "application/json"), path, Some(object))
    }

    /// Changes what a merge patch names (RFC 7386).
    ///
    /// # Errors
    ///
    /// When the API server refuses ([`Refused`]) or does not answer.
    pub fn patch(&self, path: &str, change: &Value) -> Result<Value> {
        let content = "application/merge-patch+json";
        self.json(Request::patch(path).header(header::CONTENT_TYPE, content), path, Some(change))
    }

    /// Deletes a resource; a Pod with so many seconds of grace.
    ///
    /// # Errors
    ///
    /// When the API server refuses ([`Refused`]) or does not answer.
    pub fn delete(&self, path: &str, grace_seconds: Option<u32>) -> Result<Value> {
        let query = grace_seconds.map(|grace| format!("?gracePeriodSeconds={grace}")).unwrap_or_default();
        self.json(Request::delete(format!("{path}{query}")), path, None)
    }

    fn json(&self, builder: hyper::http::request::Builder, path: &str, body: Option<&Value>) -> Result<Value> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let text = self.exchange(builder, path, body)?;
        serde_json::from_str(&text).with_context(|| format!("the API server's answer for {path} is no JSON"))
    }

    fn exchange(&self, builder: hyper::http::request::Builder, path: &str, body: Vec<u8>) -> Result<String> {
        let request = builder.body(body).with_context(|| format!("`{path}` is no path"))?;
        let what = format!("{} {path}", request.method());
        let (answer, answered) = oneshot::channel();
        self.0.orders.send(Order { request, answer }).map_err(|_unsent| anyhow!("the API's client has ended"))?;
        answered.blocking_recv().context("the API's client has ended").and_then(|answer| answer).context(what)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Without a sender the thread ends.
        self.orders = mpsc::unbounded_channel().0;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the thread of the API's client panicked");
        }
    }
}

/// A client of its own by a kubeconfig, for a runtime in a host.
pub(crate) async fn client(config: Kubeconfig) -> Result<Client> {
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .context("the kubeconfig does not do")?;
    Client::try_from(config).context("no client by the kubeconfig")
}

async fn serve(config: Kubeconfig, mut inbox: mpsc::UnboundedReceiver<Order>) {
    let client = client(config).await;
    while let Some(Order { request, answer }) = inbox.recv().await {
        let client = match &client {
            Ok(client) => client.clone(),
            Err(error) => {
                answer.send(Err(anyhow!("{error:#}"))).ok(); // who asked may be gone
                continue;
            }
        };
        tokio::spawn(async move {
            let outcome = timeout(PATIENCE, client.request_text(request)).await;
            let outcome = match outcome {
                Ok(Ok(text)) => Ok(text),
                Ok(Err(kube::Error::Api(status))) => {
                    Err(Refused { code: status.code, message: status.message.clone() }.into())
                }
                Ok(Err(error)) => Err(error.into()),
                Err(_elapsed) => Err(anyhow!("no answer within {PATIENCE:?}")),
            };
            answer.send(outcome).ok(); // who asked may be gone
        });
    }
}
