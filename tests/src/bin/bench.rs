//! `cargo xtask bench NAME`: takes one measurement.

use anyhow::Result;

fn main() -> Result<()> {
    lastsyn_tests::bench::main(std::env::args().skip(1))
}
