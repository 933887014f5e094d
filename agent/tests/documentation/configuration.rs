//! `docs/configuration.md` is made of the configuration's model. `LASTSYN_WRITE_DOCS=1` writes it anew.

use std::{collections::BTreeMap, fmt::Write as _, fs};

use lastsyn::{
    cli,
    config::{Key, keys},
};

use crate::{
    markdown::root,
    model::{Item, Member, items},
};

const PAGE: &str = "docs/configuration.md";

const INTRODUCTION: &str = "\
# Configuration

This page is made of the agent's sources, and a test holds it to them (`agent/tests/documentation`).

Each key can be said in a YAML file (`--config`, or the variable `LASTSYN_CONFIG`), by its environment variable, and by its flag; a
flag is above a variable, a variable above the file, the file above the default. In variables and flags lists and maps are written
as in YAML on one line. The configuration is read once, when the agent starts; only the log level can be changed while it runs. A
key that is not known, and a value that cannot be meant, are errors that name where they were said: the agent does not start, and the
hook holds to its own bound.

A duration needs a unit (`250ms`, `2s`, `1m30s`) and goes from 0s to 30 days. Ports go from 1 to 65535.

`POD_NAME`, `POD_NAMESPACE`, `POD_UID`, `POD_IPS`, `NODE_NAME` and `HOST_IPS` are taken for the keys of `pod` where the agent's own
variable says nothing.
";

/// What is written for a type of the model; a list of words is told from its enum.
fn written(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Duration" => "duration",
        "bool" => "`true` or `false`",
        "u16" => "number, 0 to 65535",
        "u32" => "number, 0 to 4294967295",
        "u64" => "number, 0 or more",
        "Option<u32>" => "number, 0 to 4294967295, or `null`",
        "String" => "text",
        "SocketAddr" => "address and port",
        "Option<PathBuf>" => "path",
        "IpAddr" => "address",
        "Vec<IpAddr>" => "list of addresses",
        "Vec<Port>" => "list of ports",
        "Vec<Network>" => "list of networks, as `192.0.2.0/24`",
        "Watch" => "`auto`, or a list of ports",
        "Probes" => "`auto`, `off`, or a list of `{port, period}`",
        "MaxWait" => "`auto`, or a duration",
        "FailAfter" => "`auto`, `never`, or a duration",
        "FenceUrl" => "`off`, or `http://HOST:PORT`",
        "Candidate" => "`ADDRESS:PORT` or `unix:PATH`",
        "Option<ServerName>" => "`BACKEND/SERVER`, or `null`",
        "Option<HttpRequest>" => "`{method, url, body, status}`, or `null`",
        "BTreeMap<String, Url>" => "map of names to URLs",
        "BTreeSet<String>" => "list of texts",
        _ => return None,
    })
}

/// The field that a key is of, and the section that it stands in.
fn field<'a>(items: &'a BTreeMap<String, Item>, key: &Key) -> (&'a Item, &'a Member) {
    let (mut section, mut found) = (&items["Config"], None::<&Member>);
    for part in key.name().split('.') {
        if let Some(Member { kind, .. }) = found {
            section = &items[kind];
        }
        found = section.members.iter().find(|member| member.name == part);
        assert!(found.is_some(), "the model has no {}", key.name());
    }
    (section, found.unwrap())
}

/// A comment as a reader of the page wants it: what leads into the sources left out.
fn plain(comment: &str) -> String {
    let sentences = comment.split_inclusive(". ").filter(|sentence| !sentence.contains("[`"));
    sentences.collect::<String>().trim().to_owned()
}

fn page() -> String {
    let items = items().unwrap();
    let command = cli::command();
    let run = command.find_subcommand("run").unwrap();
    let mut page = INTRODUCTION.to_owned();
    let mut last = "";
    for key in keys() {
        let (section, field) = field(&items, key);
        // A key that is in no block has one for itself.
        let name = key.name().rsplit_once('.').map_or(key.name(), |(section, _)| section);
        if name == key.name() {
            write!(page, "\n## {name}\n").unwrap();
        } else if name != last {
            write!(page, "\n## {name}\n\n{}\n", plain(&section.comment)).unwrap();
        }
        last = name;
        let argument = run.get_arguments().find(|argument| argument.get_long() == Some(key.flag()));
        let help = argument.and_then(clap::Arg::get_help).map(ToString::to_string).unwrap_or_default();
        let help = help.split(" [").next().unwrap_or_default().trim_end_matches('.').to_owned();
        assert!(!help.is_empty(), "{} has no help", key.name());
        write!(page, "\n### {}\n\n{help}.\n\n", key.name()).unwrap();
        let words = items.get(&field.kind).filter(|item| item.is_enum && written(&field.kind).is_none());
        let of_words = words
            .map(|item| item.members.iter().map(|member| format!("`{}`", member.name)).collect::<Vec<_>>().join(", "));
        let kind = of_words.unwrap_or_else(|| {
            written(&field.kind).unwrap_or_else(|| panic!("how is a {} written?", field.kind)).to_owned()
        });
        writeln!(page, "- is: {kind}").unwrap();
        writeln!(
            page,
            "- default: {}",
            if key.default().is_empty() { "none".to_owned() } else { format!("`{}`", key.default()) }
        )
        .unwrap();
        writeln!(page, "- variable: `{}`", key.variable()).unwrap();
        writeln!(page, "- flag: `--{}`", key.flag()).unwrap();
        write!(page, "\n{}\n", plain(&field.comment)).unwrap();
        if let Some(words) = words {
            page.push('\n');
            for Member { name, comment, .. } in &words.members {
                writeln!(page, "- `{name}`: {}", plain(comment)).unwrap();
            }
        }
    }
    page
}

#[test]
fn the_reference_is_what_the_model_says() {
    let (path, made) = (root().join(PAGE), page());
    if std::env::var_os("LASTSYN_WRITE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(there.lines().chain(std::iter::repeat(""))).find(|(made, there)| made != there);
    assert!(
        made == there,
        "{PAGE} is not as agent/src/config says; LASTSYN_WRITE_DOCS=1 cargo test -p lastsyn --test documentation writes \
         it. First difference, made and there: {differs:?}"
    );
}

#[test]
fn every_key_stands_in_the_reference_once() {
    let page = page();
    for key in keys() {
        assert_eq!(page.matches(&format!("\n### {}\n", key.name())).count(), 1, "{}", key.name());
        assert!(page.contains(&format!("`{}`", key.variable())), "{}", key.name());
    }
}
