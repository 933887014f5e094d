//! The course of events: what is done when, and what is looked at meanwhile.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lastsyn::server::status::Status;

use super::{
    account::{Account, Answer, StormAccount},
    frame::View,
    interrupt,
    scenario::{PACE, Plan, Scenario, Step},
    scene::Scene,
    screen::Screen,
    storm::Storm,
};
use crate::{
    Pod, Process, await_condition,
    clock::{Deadline, monotonic_now},
    counters::Counters,
};

/// How long the pod serves before it is deleted.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long the client goes on after the last thing that happens, so that an end that came too early is seen.
const AFTERWARDS: Duration = Duration::from_millis(1500);
/// Between two looks at the agent.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// Longer than any hook holds.
const LONGEST_HOOK: Duration = Duration::from_secs(45);
/// Longer than any connection of the client may take.
const LONGEST_CONNECTION: Duration = Duration::from_secs(15);
/// For what is all but done.
const SOON: Duration = Duration::from_secs(2);

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Happening {
    /// Since the pod's deletion; nothing for what came before it.
    pub(super) at: Option<Duration>,
    pub(super) what: &'static str,
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The pod serves.
    Serving,
    /// It is deleted, and the hook holds.
    Draining,
    /// Its server was told to stop.
    Stopped,
}

/// A play under way.
#[derive(Debug)]
pub(super) struct Play<'a> {
    scene: Scene,
    plan: &'a Plan,
    screen: &'a mut Screen,
    phase: Phase,
    deleted_at: Option<u64>,
    moved_at: Option<u64>,
    happenings: Vec<Happening>,
    next_look: Deadline,
}

// === impl Play ===

impl<'a> Play<'a> {
    pub(super) fn new(scene: Scene, plan: &'a Plan, screen: &'a mut Screen) -> Self {
        Self {
            scene,
            plan,
            screen,
            phase: Phase::Serving,
            deleted_at: None,
            moved_at: None,
            happenings: Vec::new(),
            next_look: Deadline::after(Duration::ZERO),
        }
    }

    /// Plays it to its end, and tears the scene down.
    ///
    /// # Errors
    ///
    /// When a part of the scene fails, or somebody interrupts.
    pub(super) fn run(mut self) -> Result<Account> {
        self.pass(WARM_UP, |_| false)?;
        if self.plan.scenario == Scenario::Stops {
            self.scene.client.set_pace(0);
            self.happened("the client stops")?;
            self.pass(SOON, |scene| scene.client.so_far().outstanding == 0)?;
        }
        let deleted_at = monotonic_now();
        self.deleted_at = Some(deleted_at);
        let hook = if self.plan.hook {
            self.phase = Phase::Draining;
            self.happened("the pod is deleted; kubelet calls the hook")?;
            Some(self.scene.agent.hook(["--json"])?)
        } else {
            self.stop_server("the pod is deleted; no hook: kubelet stops HAProxy in pod a at once")?;
            None
        };
        let answer = self.drain(hook.as_ref())?;
        self.pass(AFTERWARDS, |_| false)?;
        self.settle(deleted_at, answer)
    }

    /// Does what is due in turn, and lets the server go when the hook has answered.
    fn drain(&mut self, hook: Option<&Process>) -> Result<Option<Answer>> {
        let mut held = hook;
        let mut answer = None;
        let mut steps = self.plan.steps().into_iter().peekable();
        while held.is_some() || steps.peek().is_some() {
            if let Some(hook) = held
                && has_ended(hook)
            {
                held = None;
                answer = Some(Answer::of(hook)?);
                self.stop_server("the hook answers; kubelet stops HAProxy in pod a")?;
            }
            if let Some((_, step)) = steps.next_if(|(after, _)| self.since_deletion() >= *after) {
                self.carry_out(step)?;
            } else {
                ensure!(self.since_deletion() < LONGEST_HOOK, "the hook has not answered within {LONGEST_HOOK:?}");
                let next = steps.peek().map_or(BETWEEN_LOOKS, |(after, _)| after.saturating_sub(self.since_deletion()));
                self.pass(next, |_| held.is_some_and(has_ended))?;
            }
        }
        Ok(answer)
    }

    fn carry_out(&mut self, step: Step) -> Result<()> {
        match step {
            Step::PauseClient => {
                self.scene.client.set_pace(0);
                self.happened("the client pauses")
            }
            Step::ResumeClient => {
                self.scene.client.set_pace(PACE);
                self.happened("the client goes on")
            }
            Step::CloseListeners => {
                self.scene.haproxy_a.soft_stop()?;
                self.happened("HAProxy in pod a closes its listeners, before the hook has answered")
            }
            Step::MoveForwarding => {
                self.scene.world.route_to(Pod::B)?;
                self.moved_at = Some(monotonic_now());
                self.happened("the node sends new connections to pod b")
            }
        }
    }

    fn stop_server(&mut self, why: &'static str) -> Result<()> {
        self.scene.haproxy_a.soft_stop()?;
        self.phase = Phase::Stopped;
        self.happened(why)
    }

    /// Lets time pass, at most until something is so, and shows what goes on meanwhile.
    fn pass(&mut self, time: Duration, until: impl Fn(&Scene) -> bool) -> Result<()> {
        let deadline = Deadline::after(time);
        loop {
            interrupt::check()?;
            if until(&self.scene) || deadline.passed() {
                return Ok(());
            }
            if self.next_look.passed() {
                self.next_look = Deadline::after(BETWEEN_LOOKS);
                self.show()?;
            }
            let wait = deadline.left().min(self.next_look.left());
            // Whether its time is up or something has come about, the loop looks.
            drop(await_condition("the next look", wait, || interrupt::requested() || until(&self.scene)));
        }
    }

    fn happened(&mut self, what: &'static str) -> Result<()> {
        let happening = Happening { at: self.deleted_at.map(|_| self.since_deletion()), what };
        self.screen.happened(&happening)?;
        self.happenings.push(happening);
        Ok(())
    }

    fn show(&mut self) -> Result<()> {
        let status = self.scene.agent.status()?;
        let status: Status = serde_json::from_value(status).context("the agent's status is not understood")?;
        self.screen.show(&View {
            plan: self.plan,
            phase: self.phase,
            since_deletion: self.deleted_at.map(|_| self.since_deletion()),
            target: if self.moved_at.is_some() { Pod::B } else { Pod::A },
            status: &status,
            client: &self.scene.client.so_far(),
            storm: self.scene.storm.as_ref().map(Storm::sent),
            happenings: &self.happenings,
        })
    }

    fn since_deletion(&self) -> Duration {
        self.deleted_at.map_or(Duration::ZERO, |at| Duration::from_nanos(monotonic_now().saturating_sub(at)))
    }

    /// Ends storm and client, and counts.
    fn settle(mut self, deleted_at: u64, answer: Option<Answer>) -> Result<Account> {
        let sent = self.scene.storm.take().map(|storm| storm.sent());
        self.scene.client.set_pace(0);
        self.pass(LONGEST_CONNECTION, |scene| scene.client.so_far().outstanding == 0)?;
        let cookies = Counters::of(&self.scene.world.pod_a)?.tcp_ext("SyncookiesSent");
        let Self { scene, plan, happenings, moved_at, .. } = self;
        Ok(Account {
            plan: *plan,
            deleted_at,
            moved_at,
            answer,
            attempts: scene.client.stop()?,
            storm: sent.map(|sent| StormAccount { sent, cookies }),
            happenings,
        })
    }
}

/// A process that cannot be asked is looked at more closely by who takes its answer.
fn has_ended(process: &Process) -> bool {
    process.try_wait().map_or(true, |status| status.is_some())
}
