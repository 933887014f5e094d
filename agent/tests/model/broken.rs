//! Simpler rules, and rules without what they assume: each must be found to fail. The names in brackets are those of
//! the same traces in `docs/protocol.md`.

mod assumptions;
mod fences;
mod simpler;
mod witness;

use crate::setting::Limits;

/// The shortest trace is part of the test: it is what a reader is to see.
macro_rules! fails {
    ($name:ident, $setting:expr, $($step:literal),+ $(,)?) => {
        #[test]
        fn $name() {
            let setting: crate::setting::Setting = $setting;
            let found = crate::search::search(stringify!($name), setting);
            let trace = found.violation.expect("a violation");
            println!("    {}", trace.join("\n    "));
            assert_eq!(trace, [$($step),+]);
        }
    };
}
use fails;

/// One change, one other sync, and nothing going wrong.
const QUIET: Limits =
    Limits { ticks: 3, writes: 1, unrelated: 1, restarts: 0, failures: 0, relists: 0, agent_relists: 0 };
