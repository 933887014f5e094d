//! `cargo xtask prove NAME`: shows one promise with full numbers.

use anyhow::Result;

fn main() -> Result<()> {
    lastsyn_tests::prove::main(std::env::args().skip(1))
}
