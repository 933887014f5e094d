//! What is typed.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lastsyn_tests::{Agent, AgentConfig, Pair, Process, Server, ServerConfig, agent, await_condition, process::Stream};

use crate::blocks::{Block, Mark, of, root};

const SOON: Duration = Duration::from_secs(30);

#[test]
fn every_command_block_runs_or_says_why_not() -> Result<()> {
    let blocks = of("console")?;
    ensure!(blocks.len() > 10, "{} blocks: are they read at all?", blocks.len());
    let pair = Pair::new()?;
    let _server = Server::start(&pair.pod, ServerConfig::default())?;
    let agent = Agent::start(&pair.pod, AgentConfig::default())?;
    let directory = tempfile::tempdir()?;
    let mut ran = 0;
    for block in &blocks {
        ensure!(block.typed().next().is_some(), "{}: nobody types anything here", block.place);
        match &block.mark {
            Some(Mark::NotRun(_)) => {}
            Some(Mark::RunBy(file)) => {
                ensure!(root().join(file).is_file(), "{}: there is no {file}", block.place);
            }
            None => {
                for line in block.typed() {
                    run(&pair, &agent, directory.path(), line)
                        .with_context(|| format!("{}: `{line}` (or a mark is missing above)", block.place))?;
                    ran += 1;
                }
            }
        }
    }
    ensure!(ran > 5, "only {ran} commands were run");
    Ok(())
}

/// Runs a line as it stands: the agent's program, in the agent's pod.
fn run(pair: &Pair, agent: &Agent, directory: &std::path::Path, line: &str) -> Result<()> {
    let mut words = line.split_whitespace();
    ensure!(words.next() == Some("lastsyn"), "only the agent's own program is run here");
    // The file that the examples speak of is an agent's log: that of this one.
    std::fs::write(directory.join("web-1.log"), agent.process().text(Stream::Error))?;
    let mut command = pair.pod.command(agent::binary()?)?;
    command.args(words).current_dir(directory).env("LASTSYN_SERVER_SOCKET", agent::socket(&pair.pod));
    let process = Process::start(line, &mut command)?;
    if line.contains("--watch") {
        let shows = || process.text(Stream::Output).contains("80");
        await_condition("a screen with the listener", SOON, shows)?;
        process.kill()?;
        return Ok(());
    }
    let status = process.wait(SOON)?;
    // What is not so in this pod, which is in no cluster, `check` says with 1.
    let said = process.text(Stream::Output);
    let accepted = status.success() || (line.starts_with("lastsyn check") && status.code() == Some(1));
    if !accepted || (said.is_empty() && !line.contains("--html")) {
        bail!("{}", process.report());
    }
    Ok(())
}

#[test]
fn blocks_have_a_language_that_is_known() -> Result<()> {
    let others: Vec<Block> =
        ["sh", "bash", "shell", "yml", "text"].into_iter().map(of).collect::<Result<Vec<_>>>()?.concat();
    ensure!(
        others.is_empty(),
        "write `console` or `yaml`: {:?}",
        others.iter().map(|one| &one.place).collect::<Vec<_>>()
    );
    let unmarked = of("")?;
    let typed = unmarked.iter().filter(|block| block.lines.iter().any(|line| line.starts_with("$ ")));
    ensure!(typed.count() == 0, "a block in which something is typed is a `console`");
    Ok(())
}
