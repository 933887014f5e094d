//! The fenced blocks of every page, with the mark above each.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

/// One fenced block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Page and line, for messages.
    pub(crate) place: String,
    /// What follows the fence: `console`, `yaml`, or nothing.
    pub(crate) language: String,
    pub(crate) lines: Vec<String>,
    pub(crate) mark: Option<Mark>,
}

/// Why a block is not run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A file of this repository runs it.
    RunBy(String),
    /// Nothing does, for this reason.
    NotRun(String),
}

impl Block {
    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// What is typed: the lines behind a prompt, without the comment at their end.
    pub(crate) fn typed(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| {
            let typed = line.strip_prefix("$ ").or_else(|| line.strip_prefix("# "))?;
            Some(typed.split("  #").next().unwrap_or(typed).trim_end())
        })
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every block of a language, of the README, the pages and those beside them.
pub(crate) fn of(language: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "charts/lastsyn/README.md"].map(PathBuf::from).to_vec();
    below(Path::new("docs"), &mut pages)?;
    for page in pages {
        blocks.extend(read(&page.display().to_string(), &fs::read_to_string(root().join(&page))?)?);
    }
    blocks.retain(|block| block.language == language);
    Ok(blocks)
}

fn below(directory: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(root().join(directory))? {
        let path = directory.join(entry?.file_name());
        if root().join(&path).is_dir() {
            below(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

pub(crate) fn read(page: &str, text: &str) -> Result<Vec<Block>> {
    let (mut blocks, mut open, mut above): (_, Option<Block>, _) = (Vec::new(), None, "");
    for (at, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            if let Some(block) = open.take() {
                blocks.push(block);
                above = "";
            } else {
                let place = format!("{page}:{}", at + 1);
                let mark = mark(above).with_context(|| place.clone())?;
                open = Some(Block { place, language: language.to_owned(), lines: Vec::new(), mark });
            }
        } else if let Some(block) = &mut open {
            block.lines.push(line.to_owned());
        } else if !line.is_empty() {
            above = line;
        }
    }
    ensure!(open.is_none(), "{page} has a block without an end");
    Ok(blocks)
}

fn mark(line: &str) -> Result<Option<Mark>> {
    let Some(comment) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) else { return Ok(None) };
    Ok(Some(match comment.split_once(": ") {
        Some(("run by", file)) => Mark::RunBy(file.to_owned()),
        Some(("not run", why)) if why.split(' ').count() > 3 => Mark::NotRun(why.to_owned()),
        _ => bail!("{line:?} is neither `run by: FILE` nor `not run: WHY`, in some words"),
    }))
}

#[test]
fn marks_stand_directly_above_their_block() {
    let text = "<!-- run by: a.rs -->\n```console\n$ one   # first\nsaid\n# two\n```\n```yaml\na: 1\n```\nwords\n\n```console\n```\n";
    let blocks = read("page", text).unwrap();
    assert_eq!(blocks[0].typed().collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(blocks[0].mark, Some(Mark::RunBy("a.rs".to_owned())));
    assert_eq!((blocks[1].language.as_str(), blocks[2].mark.as_ref()), ("yaml", None));
    assert!(read("page", "<!-- not run: no -->\n```console\n```\n").is_err(), "a reason takes some words");
    assert!(read("page", "```yaml\n").is_err());
}
