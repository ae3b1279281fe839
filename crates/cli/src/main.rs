//! The windlass binary.

fn main() -> anyhow::Result<()> {
    anyhow::bail!("not yet")
}
