//! Reads the machine's own apt sources, to learn which mirror it uses and which key it trusts for it.
//!
//! Both formats of sources.list(5) are read: one line per source, and deb822 stanzas.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// A source of binary packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) uri: String,
    pub(crate) suites: Vec<String>,
    pub(crate) components: Vec<String>,
    /// The value of `Signed-By`: files, fingerprints, or a whole key, as deb822 writes it.
    pub(crate) signed_by: Option<String>,
}

/// Every enabled source of binary packages below `directory`, usually `/etc/apt`, in the order that apt reads them.
pub(crate) fn read(directory: &Path) -> Result<Vec<Source>> {
    let mut files = vec![directory.join("sources.list")];
    let parts = directory.join("sources.list.d");
    if parts.is_dir() {
        let mut names: Vec<PathBuf> = fs::read_dir(&parts)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .with_context(|| format!("cannot list {}", parts.display()))?;
        names.sort();
        files.extend(names);
    }
    let mut sources = Vec::new();
    for file in files.into_iter().filter(|file| file.is_file()) {
        let parse = match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => one_line_style,
            Some("sources") => deb822_style,
            _ => continue,
        };
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        sources.extend(parse(&text));
    }
    Ok(sources)
}

/// The machine's own mirrors of Debian's archive, the likeliest first; none where it is not Debian.
pub(crate) fn debian_mirrors() -> Result<Vec<Source>> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    Ok(mirrors_among(read(Path::new("/etc/apt"))?, &release))
}

/// The sources that are mirrors of Debian's archive: those that give the main component of the machine's own release.
/// Others may use the same words for packages of their own; they come later, for their names say less.
fn mirrors_among(sources: Vec<Source>, release: &str) -> Vec<Source> {
    let field = |name: &str| {
        release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(|value| value.trim_matches('"'))
    };
    let debian = field("ID") == Some("debian");
    let codename = field("VERSION_CODENAME");
    let mut mirrors: Vec<_> = sources
        .into_iter()
        .filter(|source| debian && source.components.iter().any(|component| component == "main"))
        .filter(|source| {
            source.suites.iter().any(|suite| {
                Some(suite.as_str()) == codename || ["stable", "testing", "unstable", "sid"].contains(&suite.as_str())
            })
        })
        .collect();
    mirrors.sort_by_key(|source| !source.uri.trim_end_matches('/').ends_with("/debian"));
    mirrors
}

fn one_line_style(text: &str) -> Vec<Source> {
    text.lines().filter_map(source_of_line).collect()
}

fn source_of_line(line: &str) -> Option<Source> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let mut rest = line.strip_prefix("deb")?;
    if !rest.starts_with([' ', '\t', '[']) {
        return None; // `deb-src`
    }
    rest = rest.trim_start();
    let mut signed_by = None;
    if let Some(bracketed) = rest.strip_prefix('[') {
        let (options, after) = bracketed.split_once(']')?;
        signed_by = options
            .split_whitespace()
            .find_map(|option| option.strip_prefix("signed-by="))
            .map(|files| files.replace(',', " "));
        rest = after;
    }
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (uri, suite) = words.next().zip(words.next())?;
    Some(Source { uri, suites: vec![suite], components: words.collect(), signed_by })
}

fn deb822_style(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    for stanza in stanzas(text) {
        let field =
            |name: &str| stanza.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let words = |name: &str| -> Vec<String> {
            field(name).map(|value| value.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
        };
        let disabled = field("Enabled").is_some_and(|value| {
            ["no", "false", "without", "off", "disable"].iter().any(|word| value.trim().eq_ignore_ascii_case(word))
        });
        if disabled || !words("Types").iter().any(|kind| kind == "deb") {
            continue;
        }
        for uri in words("URIs") {
            sources.push(Source {
                uri,
                suites: words("Suites"),
                components: words("Components"),
                signed_by: field("Signed-By").cloned(),
            });
        }
    }
    sources
}

/// The stanzas as lists of fields. The lines that continue a value stay as they are, for they may be a key.
fn stanzas(text: &str) -> Vec<Vec<(String, String)>> {
    let mut stanzas: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.trim().is_empty() {
            stanzas.push(Vec::new());
        } else if let Some(stanza) = stanzas.last_mut() {
            if line.starts_with([' ', '\t']) {
                if let Some((_, value)) = stanza.last_mut() {
                    value.push('\n');
                    value.push_str(line);
                }
            } else if let Some((field, value)) = line.split_once(':') {
                stanza.push((field.trim().to_owned(), value.trim().to_owned()));
            }
        }
    }
    stanzas.retain(|stanza| !stanza.is_empty());
    stanzas
}

// === impl Source ===

impl Source {
    /// The same mirror and key with other suites, as a deb822 stanza.
    pub(crate) fn stanza(&self, suites: &[&str], component: &str) -> String {
        let mut stanza =
            format!("Types: deb\nURIs: {}\nSuites: {}\nComponents: {component}\n", self.uri, suites.join(" "));
        if let Some(signed_by) = &self.signed_by {
            stanza.push_str("Signed-By: ");
            stanza.push_str(signed_by);
            stanza.push('\n');
        }
        stanza
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uri: &str, suites: &[&str], components: &[&str], signed_by: Option<&str>) -> Source {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Source {
            uri: uri.to_owned(),
            suites: owned(suites),
            components: owned(components),
            signed_by: signed_by.map(str::to_owned),
        }
    }

    #[test]
    fn one_line_sources() {
        let text = "# deb http://commented.example/debian bookworm main\n\
                    deb http://mirror.example/debian bookworm main contrib # the mirror\n\
                    deb-src http://mirror.example/debian bookworm main\n\
                    deb [arch=amd64 signed-by=/a.gpg,/b.gpg] https://other.example/debian/ bookworm-updates main\n\
                    deb\t[trusted=yes]\tfile:/srv/packages ./\n\
                    \n\
                    debris\n";
        assert_eq!(
            one_line_style(text),
            [
                source("http://mirror.example/debian", &["bookworm"], &["main", "contrib"], None),
                source("https://other.example/debian/", &["bookworm-updates"], &["main"], Some("/a.gpg /b.gpg")),
                source("file:/srv/packages", &["./"], &[], None),
            ]
        );
    }

    #[test]
    fn deb822_sources() {
        let text = "Types: deb deb-src\n\
                    # a comment in the stanza\n\
                    URIs: http://mirror.example/debian\n http://second.example/debian\n\
                    suites: bookworm bookworm-updates\n\
                    Components: main\n\
                    Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\
                    \n\
                    Types: deb\nEnabled: no\nURIs: http://off.example/\nSuites: bookworm\nComponents: main\n\
                    \n\n\
                    Types: deb-src\nURIs: http://sources.example/\nSuites: bookworm\nComponents: main\n";
        let keyring = Some("/usr/share/keyrings/debian-archive-keyring.gpg");
        assert_eq!(
            deb822_style(text),
            [
                source("http://mirror.example/debian", &["bookworm", "bookworm-updates"], &["main"], keyring),
                source("http://second.example/debian", &["bookworm", "bookworm-updates"], &["main"], keyring),
            ]
        );
    }

    #[test]
    fn a_key_inside_a_stanza_is_passed_on_line_by_line() {
        let text = "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\nSigned-By:\n \
                    -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDME\n -----END PGP PUBLIC KEY BLOCK-----\n";
        let sources = deb822_style(text);
        let stanza = sources[0].stanza(&["testing", "unstable"], "main");
        assert!(stanza.contains("Suites: testing unstable\n"), "{stanza}");
        assert_eq!(deb822_style(&stanza)[0].signed_by, sources[0].signed_by);
        assert!(stanza.contains("\n .\n mDME\n"), "{stanza}");
    }

    #[test]
    fn files_are_read_in_apts_order_and_others_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let parts = directory.path().join("sources.list.d");
        fs::create_dir(&parts).unwrap();
        let line = |host: &str| format!("deb http://{host}.example/debian bookworm main\n");
        fs::write(directory.path().join("sources.list"), line("first")).unwrap();
        fs::write(parts.join("b.list"), line("third")).unwrap();
        fs::write(parts.join("a.list"), line("second")).unwrap();
        fs::write(parts.join("a.list.save"), line("never")).unwrap();
        let hosts: Vec<_> = read(directory.path()).unwrap().into_iter().map(|source| source.uri).collect();
        assert_eq!(hosts, ["first", "second", "third"].map(|host| format!("http://{host}.example/debian")));
    }

    const RELEASE: &str = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_CODENAME=bookworm\n";

    fn mirror(uri: &str, suite: &str, component: &str) -> Source {
        Source {
            uri: uri.to_owned(),
            suites: vec![suite.to_owned()],
            components: vec![component.to_owned()],
            signed_by: None,
        }
    }

    #[test]
    fn only_debians_own_archive_is_a_mirror_and_the_likeliest_comes_first() {
        let sources = [
            mirror("https://vendor.example/apt", "bookworm", "main"),
            mirror("http://mirror.example/debian-security", "bookworm-security", "main"),
            mirror("https://vendor.example/debian", "nodistro", "main"),
            mirror("https://docker.example/linux/debian", "bookworm", "stable"),
            mirror("http://mirror.example/debian/", "bookworm", "main"),
        ];
        let uris: Vec<_> = mirrors_among(sources.to_vec(), RELEASE).into_iter().map(|source| source.uri).collect();
        assert_eq!(uris, ["http://mirror.example/debian/", "https://vendor.example/apt"]);
        assert!(mirrors_among(sources.to_vec(), "ID=ubuntu\nVERSION_CODENAME=bookworm\n").is_empty());
    }

    #[test]
    fn a_machine_without_sources_has_none() {
        assert_eq!(read(tempfile::tempdir().unwrap().path()).unwrap(), []);
    }
}
