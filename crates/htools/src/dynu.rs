//! Utilization of instances, read from a file (`-U`, HT-loads).

use cluster::Utilisation;
use thiserror::Error;

use crate::number::{NumberError, read_float};

/// Error in a utilization file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DynuError {
    /// The line isn't a name and four values, separated by single spaces.
    #[error("Cannot parse line {0}")]
    Line(String),
    #[error(transparent)]
    Number(#[from] NumberError),
}

/// Reads lines `NAME CPU MEMORY DISK NETWORK`.
pub fn parse(text: &str) -> Result<Vec<(String, Utilisation)>, DynuError> {
    text.split_terminator('\n').map(parse_line).collect()
}

fn parse_line(line: &str) -> Result<(String, Utilisation), DynuError> {
    let fields: Vec<&str> = line.split(' ').collect();
    let &[name, cpu, memory, disk, network] = fields.as_slice() else {
        return Err(DynuError::Line(line.to_owned()));
    };
    let read = |text| read_float(name, text);
    Ok((name.to_owned(), [read(cpu)?, read(memory)?, read(disk)?, read(network)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files() {
        let check = |text: &str, expect: Result<&[(&str, Utilisation)], &str>| {
            let expect = expect
                .map(|list| list.iter().map(|(n, u)| ((*n).to_owned(), *u)).collect::<Vec<_>>())
                .map_err(str::to_owned);
            assert_eq!(parse(text).map_err(|e| e.to_string()), expect);
        };
        check("", Ok(&[]));
        check("i1 1 2.5 3e1 0", Ok(&[("i1", [1.0, 2.5, 30.0, 0.0])]));
        check("i1 1 2 3 4\ni2 4 3 2 1\n", Ok(&[("i1", [1.0, 2.0, 3.0, 4.0]), ("i2", [4.0, 3.0, 2.0, 1.0])]));
        check("i1 1 2 3 4\n\n", Err("Cannot parse line "));
        check("# comment", Err("Cannot parse line # comment"));
        check("i1 1 2 3", Err("Cannot parse line i1 1 2 3"));
        check("i1 1 2 3 4 5", Err("Cannot parse line i1 1 2 3 4 5"));
        check("i1 1  3 4", Err("i1: cannot parse string ''"));
        check("i1 x 2 3 4", Err("i1: cannot parse string 'x'"));
        check("i1 1 2 3 4\r", Err("i1: leftover characters when parsing '4\r': '\r'"));
    }
}
