//! Measurements: `cargo xtask bench NAME`.

/// x
pub fn main(_: impl Iterator<Item = String>) -> anyhow::Result<()> {
    Ok(())
}
