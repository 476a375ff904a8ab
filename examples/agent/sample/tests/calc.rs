//! Tests run the program and check its output.

use std::process::Command;

fn calc(text: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_calc")).arg(text).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn products_are_stronger_than_sums() {
    assert_eq!(calc("2 + 3 * 4"), "14");
    assert_eq!(calc("(2 + 3) * 4"), "20");
}

#[test]
fn quotients_are_taken_from_the_left() {
    assert_eq!(calc("8 / 4 / 2"), "1");
}
