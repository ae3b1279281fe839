//! The file of static tokens: lines of comma-separated values, in the form of upstream's
//! `--token-auth-file`.
//!
//! A line is `token,user name,user uid` and, if there are groups, a fourth value with their names
//! between commas, which therefore stands in quotes.

use crate::user::User;

/// Bytes of a token file that are read at most.
const FILE_BYTES_LIMIT: usize = 4 << 20;

/// A user and the token that proves it.
#[derive(Clone, PartialEq, Eq)]
pub struct StaticToken {
    /// The bearer token.
    pub token: String,
    /// The user that it belongs to.
    pub user: User,
}

impl std::fmt::Debug for StaticToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StaticToken({})", self.user.name)
    }
}

/// A token file that cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file is larger than any that is meant.
    #[error("the token file has more than {FILE_BYTES_LIMIT} bytes")]
    TooLarge,
    /// A line has too few values.
    #[error(
        "line {line} of the token file must have at least 3 columns (token, user name, user uid), \
         found {found}"
    )]
    Columns {
        /// The line, counted from 1.
        line: usize,
        /// The number of its values.
        found: usize,
    },
    /// A quoted value has no end, or something follows it.
    #[error("line {line} of the token file has a quote that is not closed or not alone")]
    Quote {
        /// The line, counted from 1.
        line: usize,
    },
}

/// The tokens of a token file. Lines without a token are left out; of two lines with the same
/// token the last one counts.
///
/// # Errors
/// When a line has fewer than three values, or a quote out of place.
pub fn read_token_file(text: &str) -> Result<Vec<StaticToken>, TokenFileError> {
    if text.len() > FILE_BYTES_LIMIT {
        return Err(TokenFileError::TooLarge);
    }
    let mut tokens: Vec<StaticToken> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        if line.trim().is_empty() {
            continue;
        }
        let values = values_of(line).ok_or(TokenFileError::Quote { line: line_number })?;
        let [token, name, uid, ..] = values.as_slice() else {
            return Err(TokenFileError::Columns {
                line: line_number,
                found: values.len(),
            });
        };
        if token.is_empty() {
            continue;
        }
        let groups = values.get(3).map_or("", String::as_str);
        let groups: Vec<&str> = groups.split(',').filter(|name| !name.is_empty()).collect();
        let user = User {
            uid: uid.clone(),
            ..User::new(name, &groups)
        };
        tokens.retain(|known| known.token != *token);
        tokens.push(StaticToken {
            token: token.clone(),
            user,
        });
    }
    Ok(tokens)
}

/// The values of a line; `None` if a quote is out of place.
fn values_of(line: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut rest = line;
    loop {
        let (value, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_value(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        values.push(value);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return after.is_empty().then_some(values),
        }
    }
}

/// A value after its opening quote, and the text after its closing one. Two quotes stand for one.
fn quoted_value(text: &str) -> Option<(String, &str)> {
    let (mut value, mut rest) = (String::new(), text);
    loop {
        let end = rest.find('"')?;
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                value.push('"');
                rest = more;
            }
            None => return Some((value, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_token_its_user_and_the_users_groups() {
        let text = "t1,ann,1,\"dev,ops\"\n\nt2,ben,2\n,nobody,3\nt1,cid,4\n";
        let tokens = read_token_file(text).unwrap();
        let names: Vec<&str> = tokens.iter().map(|it| it.user.name.as_str()).collect();
        assert_eq!(names, ["ben", "cid"], "the last line of a token counts");
        let ann = &read_token_file("t1,ann,1,\"dev,ops\"").unwrap()[0];
        assert_eq!(ann.user.uid, "1");
        assert_eq!(ann.user.groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(format!("{ann:?}"), "StaticToken(ann)", "no token is shown");
    }

    #[test]
    fn short_lines_and_open_quotes_are_errors() {
        let short = read_token_file("a,b,c\nt,ann").unwrap_err();
        assert_eq!(short, TokenFileError::Columns { line: 2, found: 2 });
        for text in ["t,ann,1,\"dev", "t,ann,1,\"dev\"x"] {
            let refused = read_token_file(text).unwrap_err();
            assert_eq!(refused, TokenFileError::Quote { line: 1 });
        }
    }
}
