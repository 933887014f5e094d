//! `cargo xtask release --dry-run`: whether what is checked out can become a version, and what that takes. It changes nothing:
//! each step is a person's to take.

mod changelog;
mod minimum;
mod versions;

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use self::changelog::Section;
use crate::process;

/// How to release.
#[derive(Args)]
pub(crate) struct Choice {
    /// Check, and tell each step. There is no other way: a version is made by people
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(root: &Path, choice: &Choice) -> Result<()> {
    ensure!(choice.dry_run, "a version is made by people, who are told each step: `cargo xtask release --dry-run`");
    let mut failures = check(root)?;
    let workspace = Workspace::of(root)?;
    failures.extend(minimum::toolchain(&workspace.minimum, &process::read(Command::new("rustc").arg("--version"))?));
    let tag = format!("v{}", workspace.version);
    let tagged = process::read(git(root).args(["tag", "--points-at", "HEAD"]))?;
    if !tagged.lines().any(|name| name == tag) && !process::read(git(root).args(["tag", "--list", &tag]))?.is_empty() {
        failures.push(format!("the tag {tag} is another commit's: set the next version in Cargo.toml"));
    }
    let changed = process::read(git(root).args(["status", "--porcelain"]))?;
    if !changed.is_empty() {
        failures.push(format!("there are changes that are not committed:\n{changed}"));
    }
    if !failures.is_empty() {
        bail!("lastsyn {} cannot be released:\n- {}", workspace.version, failures.join("\n- "));
    }
    let section = changelog::section(&read(root, changelog::FILE)?, &workspace.version)?;
    for (number, step) in steps(&workspace.version, &section).iter().enumerate() {
        eprintln!("{}. {step}", number + 1);
    }
    eprintln!("Nothing was changed.");
    Ok(())
}

/// Everything that keeps the files of a repository from being a version.
fn check(root: &Path) -> Result<Vec<String>> {
    let workspace = Workspace::of(root)?;
    let mut failures = versions::failures(root, &workspace)?;
    failures.extend(minimum::failures(root, &workspace)?);
    if let Err(error) = changelog::section(&read(root, changelog::FILE)?, &workspace.version) {
        failures.push(format!("{error:#}"));
    }
    Ok(failures)
}

fn steps(version: &str, section: &Section) -> Vec<String> {
    let mut steps = Vec::new();
    if *section == Section::Unreleased {
        steps.push(format!(
            "{}: put `## {version} - YYYY-MM-DD`, with the day's date, below `## Unreleased`, and commit that",
            changelog::FILE
        ));
    }
    steps.extend([
        "cargo xtask test --require-rebuild".to_owned(),
        "cargo xtask dist --twice, and commit results/dist.json".to_owned(),
        format!("git tag --annotate v{version} --message 'lastsyn {version}', and push it: the workflow `release` makes the files"),
        "hold the digests in its SHA256SUMS against those of the second step".to_owned(),
        format!("copy the image to a registry with skopeo, as the README tells, and publish the files at v{version}"),
        "helm package charts/lastsyn, and publish the chart".to_owned(),
        "set the next version in Cargo.toml, and run this again: it names every other place".to_owned(),
    ]);
    steps
}

/// What the root's manifest says.
struct Workspace {
    version: String,
    /// `rust-version`: the oldest toolchain that builds it.
    minimum: String,
    members: Vec<String>,
}

// === impl Workspace ===

impl Workspace {
    fn of(root: &Path) -> Result<Self> {
        let manifest: toml::Table =
            toml::from_str(&read(root, "Cargo.toml")?).context("the workspace's Cargo.toml is not as it was")?;
        let workspace = manifest.get("workspace").context("Cargo.toml has no workspace")?;
        let text = |key: &str| {
            let value = workspace.get("package").and_then(|package| package.get(key)).and_then(toml::Value::as_str);
            value.map(str::to_owned).with_context(|| format!("Cargo.toml has no workspace.package.{key}"))
        };
        let members =
            workspace.get("members").and_then(toml::Value::as_array).context("the workspace has no members")?;
        let members = members.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect();
        Ok(Self { version: text("version")?, minimum: text("rust-version")?, members })
    }
}

fn read(root: &Path, file: &str) -> Result<String> {
    fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(root);
    git
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    /// A copy of what is checked, so that it can be broken.
    fn copy() -> tempfile::TempDir {
        let (root, copy) = (workspace::root().unwrap(), tempfile::tempdir().unwrap());
        let mut files: Vec<_> =
            ["Cargo.toml", "Cargo.lock", "Dockerfile", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
                .into_iter()
                .chain(["CHANGELOG.md", ".github/workflows/test.yml", ".github/workflows/release.yml"])
                .map(|file| root.join(file))
                .collect();
        files.extend(Workspace::of(&root).unwrap().members.iter().map(|member| root.join(member).join("Cargo.toml")));
        for directory in ["docs", "charts"] {
            files.extend(workspace::files(&root.join(directory)).unwrap());
        }
        for file in files {
            let to = copy.path().join(file.strip_prefix(&root).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(&file, to).unwrap();
        }
        copy
    }

    #[test]
    fn the_repository_could_be_released() {
        assert_eq!(check(copy().path()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_thing_that_is_out_of_step_is_named_with_its_file() {
        let copy = copy();
        let Workspace { version, minimum, .. } = Workspace::of(copy.path()).unwrap();
        for (file, from, to, said) in [
            ("Cargo.toml", format!("version = \"{version}\"\n"), "version = \"9.9.9\"\n", "Cargo.lock has lastsyn "),
            ("Cargo.toml", format!("rust-version = \"{minimum}\""), "rust-version = \"9.9\"", "README.md says `Rust "),
            (
                "Cargo.lock",
                format!("name = \"xtask\"\nversion = \"{version}\""),
                "name = \"xtask\"\nversion = \"9.9.9\"",
                "Cargo.lock has xtask 9.9.9",
            ),
            (
                "agent/Cargo.toml",
                "\nversion.workspace = true".to_owned(),
                "\nversion = \"9.9.9\"",
                "agent/Cargo.toml has a version of its own",
            ),
            (
                "tests/Cargo.toml",
                "rust-version.workspace = true".to_owned(),
                "rust-version = \"1.80\"",
                "tests/Cargo.toml has a rust-version of its own",
            ),
            (
                "charts/lastsyn/Chart.yaml",
                format!("\nversion: {version}"),
                "\nversion: 9.9.9",
                "Chart.yaml says 9.9.9 at /version",
            ),
            (
                "charts/lastsyn/Chart.yaml",
                format!("appVersion: \"{version}\""),
                "appVersion: \"9.9.9\"",
                "Chart.yaml says 9.9.9 at /appVersion",
            ),
            (
                "charts/lastsyn/values.yaml",
                format!("tag: \"{version}\""),
                "tag: \"9.9.9\"",
                "values.yaml says 9.9.9 at /image/tag",
            ),
            (
                "charts/examples/haproxy/Chart.yaml",
                format!("    version: {version}"),
                "    version: 9.9.9",
                "haproxy/Chart.yaml says 9.9.9 at /dependencies/0/version",
            ),
            (
                "charts/lastsyn/README.md",
                format!("name: lastsyn, version: {version}"),
                "name: lastsyn, version: 9.9.9",
                "charts/lastsyn/README.md:",
            ),
            ("README.md", format!("lastsyn:{version}"), "lastsyn:9.9.9", " says 9.9.9, not "),
            ("docs/recipes/nginx.yaml", format!("lastsyn:{version}"), "lastsyn:9.9.9", "docs/recipes/nginx.yaml:"),
            ("README.md", format!("Rust {minimum}"), "Rust 1.80", "README.md says `Rust 1.80`"),
            ("CONTRIBUTING.md", format!("Rust {minimum}"), "Rust", "CONTRIBUTING.md does not say `Rust "),
            ("Dockerfile", format!("FROM rust:{minimum}-"), "FROM rust:1.80-", "Dockerfile says `FROM rust:1.80`"),
            (
                ".github/workflows/test.yml",
                format!("image: rust:{minimum}-"),
                "image: rust:1.80-",
                "test.yml says `image: rust:1.80`",
            ),
            (
                ".github/workflows/release.yml",
                format!("image: rust:{minimum}-"),
                "image: debian:",
                "release.yml does not say",
            ),
            ("CHANGELOG.md", "## Unreleased".to_owned(), "## Later", "has no section `## Unreleased`"),
        ] {
            let path = copy.path().join(file);
            let whole = fs::read_to_string(&path).unwrap();
            assert!(whole.contains(&from), "{file} has no `{from}`");
            fs::write(&path, whole.replacen(&from, to, 1)).unwrap();
            let failures = check(copy.path()).unwrap();
            assert!(failures.iter().any(|failure| failure.contains(said)), "{file}: {failures:#?}");
            fs::write(&path, whole).unwrap();
        }
        assert!(check(copy.path()).unwrap().is_empty(), "every break was mended");
    }

    #[test]
    fn a_section_with_a_date_needs_no_step() {
        let (unreleased, dated) = (steps("1.2.3", &Section::Unreleased), steps("1.2.3", &Section::Dated));
        assert!(unreleased[0].starts_with("CHANGELOG.md: put `## 1.2.3 - YYYY-MM-DD`"), "{unreleased:#?}");
        assert_eq!(unreleased[1..], dated);
        assert!(dated.iter().any(|step| step.starts_with("git tag --annotate v1.2.3")), "{dated:#?}");
    }
}
