//! Splits text into tokens.

use std::{iter::Peekable, str::Chars};

/// The smallest parts of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token {
    /// A number, such as `3` or `0.25`.
    Number(f64),
    /// `+`
    Plus,
    /// `-`, as an operator or as a sign. The parser knows which.
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `(`
    Open,
    /// `)`
    Close,
}

/// Why text cannot be split into tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LexError {
    /// A character that begins no token.
    UnknownCharacter {
        /// The character.
        character: char,
        /// Its position in the text, in characters, from 0.
        position: usize,
    },
    /// Digits and points that are not a number, such as `1.2.3`.
    NoNumber {
        /// The text that was found.
        text: String,
        /// Where it begins, in characters, from 0.
        position: usize,
    },
}

/// Returns the tokens of a text. White space divides tokens and is left out.
///
/// # Errors
///
/// - [`LexError::UnknownCharacter`] for a character that begins no token.
/// - [`LexError::NoNumber`] for digits and points that are not a number.
pub fn tokens(text: &str) -> Result<Vec<Token>, LexError> {
    let mut characters = text.chars().peekable();
    let mut tokens = Vec::new();
    let mut position = 0;
    while let Some(character) = characters.peek().copied() {
        let token = match character {
            '+' => Token::Plus,
            '-' => Token::Minus,
            '*' => Token::Star,
            '/' => Token::Slash,
            '(' => Token::Open,
            ')' => Token::Close,
            '0'..='9' | '.' => {
                let (number, length) = number(&mut characters, position)?;
                tokens.push(Token::Number(number));
                position += length;
                continue;
            }
            _ if character.is_whitespace() => {
                characters.next();
                position += 1;
                continue;
            }
            _ => return Err(LexError::UnknownCharacter { character, position }),
        };
        characters.next();
        position += 1;
        tokens.push(token);
    }
    Ok(tokens)
}

/// Reads leading digits and points. Returns the number and its length in characters.
fn number(characters: &mut Peekable<Chars<'_>>, position: usize) -> Result<(f64, usize), LexError> {
    let mut text = String::new();
    while let Some(character) = characters.peek().copied() {
        if !character.is_ascii_digit() && character != '.' {
            break;
        }
        text.push(character);
        characters.next();
    }
    match text.parse() {
        Ok(number) => Ok((number, text.chars().count())),
        Err(_) => Err(LexError::NoNumber { text, position }),
    }
}
