//! `lastsyn inject`: puts the agent into a workload's manifest, between standard input and standard output.

mod account;
pub(super) mod choices;
mod documents;
mod error;
mod hook;
mod node;
mod pod;
mod probes;
mod rights;
mod sidecar;
mod workload;

use std::io::{self, Read, Write};

use clap::ArgMatches;

use self::{choices::Choices, error::InjectError, node::Node, rights::Account};
use super::{exit::Exit, output::remark};

/// The agent's port, as the chart has it.
const PORT: u64 = 19480;

/// What was made, and what is to be said of it.
struct Made {
    text: String,
    remarks: Vec<String>,
}

pub(super) fn main(matches: &ArgMatches) -> Exit {
    let choices = match Choices::read(matches) {
        Ok(choices) => choices,
        Err(wrong) => {
            remark(format_args!("inject: {wrong}"));
            return Exit::Usage;
        }
    };
    let mut text = String::new();
    let made = io::stdin().read_to_string(&mut text).map_err(InjectError::from).and_then(|_| inject(&text, &choices));
    let written = made.map(|made| {
        for told in made.remarks {
            remark(format_args!("inject: {told}"));
        }
        // Manifests that are cut short must not pass for whole ones.
        let mut to = io::stdout().lock();
        to.write_all(made.text.as_bytes()).and_then(|()| to.flush())
    });
    match written {
        Ok(Ok(())) => Exit::Done,
        Ok(Err(error)) => {
            remark(format_args!("inject: standard output cannot be written: {error}"));
            Exit::Failed
        }
        Err(error) => {
            remark(format_args!("inject: {error}"));
            Exit::Failed
        }
    }
}

fn inject(text: &str, choices: &Choices) -> Result<Made, InjectError> {
    let mut documents = documents::read(text)?;
    let place = workload::find(&documents, choices)?;
    let Some(manifest) = workload::at(&mut documents, place) else {
        return Err(InjectError::NoWorkload);
    };
    let title = workload::title(manifest);
    let written = Some(manifest.text_at(&["metadata", "namespace"])).filter(|name| !name.is_empty()).map(str::to_owned);
    if let (Some(namespace), Some(named)) = (&written, &choices.namespace)
        && namespace != named
    {
        let (namespace, named) = (namespace.clone(), named.clone());
        return Err(InjectError::Namespace { workload: title, namespace, named });
    }
    let Some(injected) = pod::inject(manifest, choices)? else {
        let told = format!("{title}: its pods have an agent already, and nothing is changed");
        return Ok(Made { text: text.to_owned(), remarks: vec![told] });
    };
    let mut remarks = injected.remarks;
    let mut further = Vec::new();
    if injected.account.made {
        let namespace = written.as_ref().or(choices.namespace.as_ref());
        if namespace.is_none() {
            remarks.push(format!(
                "{title}: it names no namespace, and the rights are for pods in `default`; --namespace names another"
            ));
        }
        let account = Account {
            name: &injected.account.name,
            written: written.as_deref(),
            namespace: namespace.map_or("default", String::as_str),
        };
        let shape = || InjectError::Shape { workload: title.clone(), what: "the rights" };
        further = rights::manifests(&account).ok_or_else(shape)?;
        // Of an earlier run, or of one's own.
        let is_there = |wanted: &Node| workload::manifests(&documents).any(|(_, one)| is_same(one, wanted));
        further.retain(|wanted| !is_there(wanted));
    }
    Ok(Made { text: documents::write(&documents, place.document, &further)?, remarks })
}

fn is_same(one: &Node, other: &Node) -> bool {
    [&["kind"][..], &["metadata", "name"], &["metadata", "namespace"]]
        .into_iter()
        .all(|path| one.text_at(path) == other.text_at(path))
}
