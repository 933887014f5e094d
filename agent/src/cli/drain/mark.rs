//! `lastsyn drain --mark`: the agent's own preStop hook. It says that the pod is terminating (S5), and holds nothing.

use std::time::Duration;

use hyper::{Method, StatusCode};
use tokio::time::timeout;

use super::{
    super::{exit::Exit, output::remark},
    Hook,
};
use crate::{
    client::{Candidate, Connection, Request},
    server::MARK,
};

/// How long one place may take. The pod's end waits for this hook.
const PATIENCE: Duration = Duration::from_millis(500);

/// Tells the first agent that listens. One that cannot be told learns of the end by SIGTERM, so that this is no failure.
pub(super) fn main(hook: &Hook) -> Exit {
    let failures = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => match runtime.block_on(tell(&hook.agents)) {
            Ok(()) => return Exit::Done,
            Err(failures) => failures,
        },
        Err(error) => format!("the hook cannot ask: {error}"),
    };
    remark(format_args!("drain --mark: no agent was told that the pod is terminating ({failures})"));
    if hook.strict { Exit::Unreached } else { Exit::Done }
}

async fn tell(agents: &[Candidate]) -> Result<(), String> {
    let mut failures = Vec::new();
    for agent in agents {
        match timeout(PATIENCE, mark(agent)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => failures.push(format!("{agent}: {failure}")),
            Err(_elapsed) => failures.push(format!("{agent}: no answer within {PATIENCE:?}")),
        }
    }
    Err(failures.join("; "))
}

async fn mark(agent: &Candidate) -> Result<(), String> {
    let connection = Connection::open(agent).await.map_err(|error| error.to_string())?;
    let answer = connection.ask(&Request::new(Method::POST, MARK)).await.map_err(|error| error.to_string())?;
    match answer.status {
        StatusCode::OK => Ok(()),
        status => Err(format!("answered {status}: is the agent older than its hook?")),
    }
}
