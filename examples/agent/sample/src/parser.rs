//! Parses tokens into a tree by recursive descent, with one function for each precedence.

use crate::lexer::Token;

/// An expression as a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A number by itself.
    Number(f64),
    /// A sign before an expression.
    Negative(Box<Tree>),
    /// Two expressions with an operator between them.
    Binary(Box<Tree>, Operator, Box<Tree>),
}

/// An operator that joins two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// Why tokens are not an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ParseError {
    /// An expression was expected at the end of the text.
    Unfinished,
    /// A token at a position where it is not allowed.
    Unexpected(Token),
    /// A bracket was opened and not closed.
    Unclosed,
}

/// The tokens that are still to be read.
struct Parser<'t> {
    tokens: &'t [Token],
}

/// Returns the tree of an expression. All tokens are used.
///
/// # Errors
///
/// [`ParseError`], with the first mistake.
pub fn parse(tokens: &[Token]) -> Result<Tree, ParseError> {
    let mut parser = Parser { tokens };
    let tree = parser.sum()?;
    match parser.tokens.first() {
        None => Ok(tree),
        Some(token) => Err(ParseError::Unexpected(*token)),
    }
}

impl Parser<'_> {
    fn next(&mut self) -> Option<Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    /// Takes the next token if it is an operator that this table has.
    fn operator(&mut self, table: &[(Token, Operator)]) -> Option<Operator> {
        let next = self.tokens.first()?;
        let (_, operator) = table.iter().find(|(token, _)| token == next)?;
        self.next();
        Some(*operator)
    }

    /// `+` and `-`, the weakest operators.
    fn sum(&mut self) -> Result<Tree, ParseError> {
        let left = self.product()?;
        match self.operator(&[(Token::Plus, Operator::Add), (Token::Minus, Operator::Subtract)]) {
            None => Ok(left),
            Some(operator) => {
                let right = self.sum()?;
                Ok(Tree::Binary(Box::new(left), operator, Box::new(right)))
            }
        }
    }

    /// `*` and `/`.
    fn product(&mut self) -> Result<Tree, ParseError> {
        let mut left = self.signed()?;
        let table = [(Token::Star, Operator::Multiply), (Token::Slash, Operator::Divide)];
        while let Some(operator) = self.operator(&table) {
            let right = self.signed()?;
            left = Tree::Binary(Box::new(left), operator, Box::new(right));
        }
        Ok(left)
    }

    /// Any number of leading signs.
    fn signed(&mut self) -> Result<Tree, ParseError> {
        if self.tokens.first() == Some(&Token::Minus) {
            self.next();
            return Ok(Tree::Negative(Box::new(self.signed()?)));
        }
        self.atom()
    }

    /// A number, or an expression in brackets.
    fn atom(&mut self) -> Result<Tree, ParseError> {
        match self.next() {
            None => Err(ParseError::Unfinished),
            Some(Token::Number(number)) => Ok(Tree::Number(number)),
            Some(Token::Open) => {
                let tree = self.sum()?;
                match self.next() {
                    Some(Token::Close) => Ok(tree),
                    _ => Err(ParseError::Unclosed),
                }
            }
            Some(token) => Err(ParseError::Unexpected(token)),
        }
    }
}
