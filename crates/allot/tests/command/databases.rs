//! Damaged databases, and paths that aren't files.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use crate::service::{Running, database};
use crate::shell::{allot, fresh};

#[test]
fn a_service_whose_log_is_truncated_is_not_ready() {
    let database = database();
    let service = Running::start(&database, &[]);
    service.says("host list");
    let path = database.strip_prefix("sqlite://").expect("a file");
    assert_eq!(allot(&["database", "check", &database]).status, 0, "while it is in use");
    File::create(format!("{path}-wal")).expect("truncated");
    let refused = service.allot("lease create refused --hosts 1 --for 1h");
    assert_ne!(refused.status, 0, "{}", refused.out);
    let address = service.url.strip_prefix("http://").expect("an address");
    let mut connection = TcpStream::connect(address).expect("it serves");
    connection.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").expect("written");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("text");
    assert!(answer.contains(" 503 ") && answer.contains("truncated or overwritten"), "{answer}");
}

#[test]
fn a_file_whose_last_page_is_incomplete_is_damaged() {
    let path = fresh("cut.db");
    let url = format!("sqlite://{}", path.display());
    Running::start(&url, &[]).stop();
    let whole = allot(&["database", "check", &url]);
    assert_eq!(whole.status, 0, "{}", whole.err);
    let file = File::options().write(true).open(&path).expect("the database");
    // The file gets the first 100 bytes of another page.
    file.set_len(file.metadata().expect("its length").len() + 100).expect("longer");
    let cut = allot(&["database", "check", &url]);
    assert_eq!(cut.status, 1, "{}", cut.out);
    assert!(cut.err.contains("its last page is incomplete"), "{}", cut.err);
}

#[test]
fn a_path_that_is_no_file_is_refused_and_its_name_is_escaped() {
    let pipe = fresh("\u{1b}[31mpipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is a mkfifo").success());
    let url = format!("sqlite://{}", pipe.display());
    let copy = fresh("copy.db");
    let to = format!("sqlite://{}", copy.display());
    for words in [
        ["database", "check", &url].as_slice(),
        &["database", "migrate", &url],
        &["database", "copy", &url, &to],
        &["database", "copy", &to, &url],
        &["database", "backup", "--database", &url, &copy.display().to_string()],
        &["serve", "--database", &url, "--listen", "127.0.0.1:0"],
    ] {
        let ran = allot(words);
        assert!(ran.status != 0 && !ran.err.contains('\u{1b}'), "{words:?}: {}", ran.err);
        if !words.contains(&to.as_str()) || words[2] == url {
            assert!(ran.err.contains("is a named pipe"), "{words:?}: {}", ran.err);
        }
    }
    let left = fs::read_dir(pipe.parent().expect("a directory")).expect("a directory").count();
    assert_eq!((left, copy.exists()), (1, false));
}
