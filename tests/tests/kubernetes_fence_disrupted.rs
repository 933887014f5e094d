//! A fence that is killed, cut off from the API server, or replaced in the middle of drains ends none of them early, and each verdict names what was missing.

use anyhow::{Result, ensure};
use lastsyn_tests::{
    kubernetes::{ClusterConfig, Mode, Scene},
    prove::fence::disrupted::{How, drain},
};

const DRAINS: usize = 4;

fn disturbed(how: How) -> Result<()> {
    let scene = Scene::up(&ClusterConfig { mode: Mode::Nftables, ..ClusterConfig::default() }, |service| service)?;
    let outcomes = drain(&scene, how, DRAINS)?;
    ensure!(outcomes.len() == DRAINS);
    for outcome in &outcomes {
        outcome.check()?;
    }
    // The other replica takes over: nothing is lost by it but time.
    let away = outcomes.iter().filter(|outcome| outcome.ended.reason() == "routed-away").count();
    let reasons: Vec<_> = outcomes.iter().map(|outcome| outcome.ended.reason().to_owned()).collect();
    let told =
        outcomes.iter().filter(|outcome| outcome.ended.reason() == "bound").map(|outcome| &outcome.ended.verdict);
    ensure!(away >= DRAINS / 2, "{reasons:?}: {:#?}", told.collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_fence_that_is_killed_in_the_middle_of_drains() -> Result<()> {
    disturbed(How::Killed)
}

#[test]
fn a_fence_that_is_cut_off_in_the_middle_of_drains() -> Result<()> {
    disturbed(How::Partitioned)
}

#[test]
fn a_fence_that_is_upgraded_in_the_middle_of_drains() -> Result<()> {
    disturbed(How::Upgraded)
}
