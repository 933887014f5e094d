//! Any server that takes HTTP requests: one for each phase, as the operator gave them.

use bytes::Bytes;

use super::{ProxyError, ask, beginning};
use crate::{
    client::{Candidate, Request},
    config::{Http, HttpRequest},
    core::phase::Phase,
};

/// The request for a phase.
pub(super) fn request(config: &Http, phase: Phase) -> Option<&HttpRequest> {
    match phase {
        Phase::Announce => config.announce.as_ref(),
        Phase::FailReadiness => config.fail_readiness.as_ref(),
        Phase::TakeBack => config.take_back.as_ref(),
    }
}

pub(super) async fn tell(config: &Http, phase: Phase) -> Result<(), ProxyError> {
    let Some(HttpRequest { method, url, body, status }) = request(config, phase) else {
        return Ok(());
    };
    let places: Vec<_> = url.addresses().iter().copied().map(Candidate::Tcp).collect();
    let answer = ask(
        &places,
        &Request {
            host: url.authority().to_owned().into(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            ..Request::new(method.clone(), url.path().to_owned())
        },
    )
    .await?;
    let done = status.map_or_else(|| answer.status.is_success(), |status| answer.status.as_u16() == status);
    if done {
        return Ok(());
    }
    Err(ProxyError::Status {
        place: url.authority().to_owned(),
        request: format!("{method} {}", url.path()),
        status: answer.status,
        body: beginning(&answer.body),
    })
}
