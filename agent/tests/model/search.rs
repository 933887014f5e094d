//! Running a case, and showing what came of it.

use stateright::{Checker as _, Model as _};

use crate::{
    setting::Setting,
    world::{Action, CONFIRMS, SOUND, World},
};

/// What a search found.
pub(crate) struct Found {
    /// The shortest way to a violation, one line for each step; `None` where there is none.
    pub(crate) violation: Option<Vec<String>>,
    /// Whether there was a verdict at all.
    pub(crate) confirms: bool,
    /// For people: the size of the world, and how long it took.
    pub(crate) summary: String,
}

/// Searches the whole world, breadth first, to its first violation or its end. On one thread, so that the first
/// violation is of the shortest.
pub(crate) fn search(name: &str, setting: Setting) -> Found {
    #[expect(clippy::disallowed_methods, reason = "how long a search takes is for people, and decides nothing")]
    let started = std::time::Instant::now();
    let checker = setting.checker().spawn_bfs().join();
    let seconds = started.elapsed().as_secs_f32();
    let states = checker.unique_state_count();
    let violation = checker.discovery(SOUND).map(|path| {
        let steps = path.into_vec();
        steps.windows(2).map(|pair| line(&pair[0], &pair[1].0)).collect()
    });
    Found {
        violation,
        confirms: checker.discovery(CONFIRMS).is_some(),
        summary: format!("{name}: {states} states, {} steps deep, {seconds:.1} s: {setting:?}", checker.max_depth()),
    }
}

/// One step, with its tick.
fn line((before, action): &(World, Option<Action>), after: &World) -> String {
    let action = match action {
        Some(Action::Proxy(step)) => format!("kube-proxy: {step:?}"),
        Some(action) => format!("{action:?}"),
        None => String::new(),
    };
    let routed = match (before.rules.route, after.rules.route) {
        (true, false) => ", and no longer routes to the pod",
        (false, true) => ", and routes to the pod again",
        _ => "",
    };
    format!("{} {action}{routed}", after.now)
}

/// Whether the larger worlds are to be searched.
pub(crate) fn deep() -> bool {
    std::env::var("LASTSYN_MODEL").is_ok_and(|value| value == "deep")
}
