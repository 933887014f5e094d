//! The agent's own pod, read once when the agent starts, and by the way in every drain.

use std::time::Duration;

use super::{
    access::{Access, namespace},
    convert::pod::OwnPod,
    read,
    refusal::Refusal,
};
use crate::config::Pod;

/// How often it is tried at the start. The API server may be busy just then: pods start together.
const TRIES: u32 = 6;

/// The time before the second try. It doubles with every further one.
const AGAIN: Duration = Duration::from_secs(1);

/// How long one try may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads the pod, with a client of its own for every try: when this returns, and between two tries, no connection is open.
///
/// # Errors
/// Why it cannot be read, in words: the API server does not let the agent, or has not answered for about a minute.
pub(super) async fn at_start(access: &Access, pod: &Pod, connect_timeout: Duration) -> Result<OwnPod, String> {
    let mut wait = AGAIN;
    let mut tries = 1;
    loop {
        match once(access, pod, connect_timeout).await {
            Ok(own) => return Ok(own),
            Err(Refusal::Failed(_) | Refusal::Absent | Refusal::Expired) if tries < TRIES => {
                tries += 1;
                // Not all agents of a rollout at the same time.
                tokio::time::sleep(wait.mul_f64(fastrand::f64().mul_add(0.5, 0.75))).await;
                wait *= 2;
            }
            Err(refusal) => return Err(refusal.words().to_owned()),
        }
    }
}

async fn once(access: &Access, pod: &Pod, connect_timeout: Duration) -> Result<OwnPod, Refusal> {
    let client = access.client(connect_timeout).await.map_err(|error| Refusal::from(&error))?;
    let namespace = namespace(pod, &client);
    let uid = Some(pod.uid.as_str()).filter(|uid| !uid.is_empty());
    read::pod(&client, access, &namespace, &pod.name, uid, PATIENCE).await?.own.ok_or(Refusal::Absent)
}
