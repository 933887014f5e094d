//! Where two builds of the kernel programs differ, for who must find out why.

use std::collections::BTreeMap;

use ::object::{Object as _, ObjectSection as _, read};

/// The names of the sections whose content is not the same in both, with their sizes in bytes.
pub(crate) fn that_differ(committed: &[u8], rebuilt: &[u8]) -> Vec<String> {
    let (committed, rebuilt) = match (sections(committed), sections(rebuilt)) {
        (Ok(committed), Ok(rebuilt)) => (committed, rebuilt),
        (Err(error), _) => return vec![format!("all: the committed one is no object ({error})")],
        (_, Err(error)) => return vec![format!("all: the rebuilt one is no object ({error})")],
    };
    let names: BTreeMap<_, _> = committed.iter().chain(&rebuilt).collect();
    let differ = names.into_keys().filter(|&name| committed.get(name) != rebuilt.get(name));
    let size =
        |of: &Sections, name: &str| of.get(name).map_or_else(|| "none".to_owned(), |data| data.len().to_string());
    let mut said: Vec<_> =
        differ.map(|name| format!("{name} ({} and {} bytes)", size(&committed, name), size(&rebuilt, name))).collect();
    if said.is_empty() {
        said.push("the order of its sections".to_owned());
    }
    said
}

/// Several of the same name are taken together.
type Sections = BTreeMap<String, Vec<u8>>;

fn sections(bytes: &[u8]) -> read::Result<Sections> {
    let mut found = Sections::new();
    for section in read::File::parse(bytes)?.sections() {
        found.entry(section.name()?.to_owned()).or_default().extend_from_slice(section.data()?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        object::{FILE, directory},
        workspace,
    };

    #[test]
    fn only_the_sections_that_differ_are_named() {
        let committed = fs::read(directory(&workspace::root().unwrap()).join(FILE)).unwrap();
        let mut changed = committed.clone();
        let file = read::File::parse(&*committed).unwrap();
        let (at, size) = file.section_by_name("license").unwrap().file_range().unwrap();
        changed[usize::try_from(at).unwrap()] ^= 1;
        assert_eq!(that_differ(&committed, &changed), [format!("license ({size} and {size} bytes)")]);
        assert!(that_differ(&committed, b"nothing")[0].starts_with("all: the rebuilt one is no object"));
    }
}
