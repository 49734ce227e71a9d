//! Decryption of files that open without a password: the standard security handler with RC4 and AES.
//!
//! Many producers restrict printing or copying this way. Files that need a password are reported as encrypted.

use aes::{Aes128, Aes256};
use cbc::cipher::{
    Array, BlockModeDecrypt as _, BlockModeEncrypt as _, KeyInit, KeyIvInit as _, StreamCipher as _,
};
use md5::{Digest as _, Md5};
use rc4::Rc4;
use sha2::{Sha256, Sha384, Sha512};

use super::file::File;
use super::lexer::{Dictionary, Object};

/// What a short password is extended with; an empty one is replaced by it.
const PADDING: [u8; 32] = *b"\x28\xbf\x4e\x5e\x4e\x75\x8a\x41\x64\x00\x4e\x56\xff\xfa\x01\x08\x2e\x2e\x00\xb6\xd0\x68\x3e\x80\x2f\x0c\xa9\xfe\x64\x53\x69\x7a";
/// The size of a block of AES, and of its initialisation vector.
const BLOCK: usize = 16;

/// The number and generation of an object.
pub(super) type ObjectId = (u32, u32);

/// How streams or strings are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Identity,
    Rc4,
    Aes128,
    Aes256,
}

/// The key of a file.
#[derive(Debug)]
pub(super) struct Decryption {
    key: Vec<u8>,
    streams: Method,
    strings: Method,
}

impl Decryption {
    /// Derives the key from the empty password; `None` if the file needs another one or has an unknown handler.
    pub(super) fn open(file: &File<'_>, encrypt: &Dictionary, id: &[u8]) -> Option<Self> {
        if file.get(encrypt, b"Filter").as_name() != Some(b"Standard") {
            return None;
        }
        let version = file.integer(encrypt, b"V").unwrap_or_default();
        let (streams, strings) = match version {
            1 | 2 => (Method::Rc4, Method::Rc4),
            4 | 5 => (crypt_filter(file, encrypt, b"StmF")?, crypt_filter(file, encrypt, b"StrF")?),
            _ => return None,
        };
        let key = match file.integer(encrypt, b"R")? {
            revision @ 2..=4 => {
                let bits = match version {
                    1 => 40,
                    2 => file.integer(encrypt, b"Length").unwrap_or(40),
                    _ => 128,
                };
                md5_key(file, encrypt, id, revision, usize::try_from(bits / 8).ok()?.clamp(5, 16))?
            }
            revision @ 5..=6 => sha_key(file, encrypt, revision)?,
            _ => return None,
        };
        Some(Self { key, streams, strings })
    }

    /// Returns the bytes of a stream.
    pub(super) fn stream(&self, id: ObjectId, data: &[u8]) -> Vec<u8> {
        self.decrypt(self.streams, id, data).unwrap_or_default()
    }

    /// Returns the bytes of a string.
    pub(super) fn string(&self, id: ObjectId, data: &[u8]) -> Vec<u8> {
        self.decrypt(self.strings, id, data).unwrap_or_default()
    }

    fn decrypt(&self, method: Method, id: ObjectId, data: &[u8]) -> Option<Vec<u8>> {
        match method {
            Method::Identity => Some(data.to_vec()),
            Method::Rc4 => rc4(&self.object_key(id, b""), data),
            Method::Aes128 => aes::<Aes128>(&self.object_key(id, b"sAlT"), data),
            Method::Aes256 => aes::<Aes256>(&self.key, data),
        }
    }

    /// Returns the key of one object.
    fn object_key(&self, (number, generation): ObjectId, salt: &[u8]) -> Vec<u8> {
        let [n0, n1, n2, _] = number.to_le_bytes();
        let [g0, g1, ..] = generation.to_le_bytes();
        let hash = Md5::digest([self.key.as_slice(), &[n0, n1, n2, g0, g1], salt].concat());
        hash.iter().copied().take(self.key.len() + 5).collect()
    }
}

/// Returns the method of the crypt filter that an entry names.
fn crypt_filter(file: &File<'_>, encrypt: &Dictionary, entry: &[u8]) -> Option<Method> {
    let name = file.get(encrypt, entry);
    let Some(name) = name.as_name().filter(|name| *name != b"Identity") else {
        return Some(Method::Identity);
    };
    let filter = file.dictionary(&file.dictionary(encrypt, b"CF")?, name)?;
    match file.get(&filter, b"CFM").as_name() {
        Some(b"V2") => Some(Method::Rc4),
        Some(b"AESV2") => Some(Method::Aes128),
        Some(b"AESV3") => Some(Method::Aes256),
        None | Some(b"None") => Some(Method::Identity),
        Some(_) => None,
    }
}

fn bytes(file: &File<'_>, encrypt: &Dictionary, key: &[u8]) -> Vec<u8> {
    if let Object::String(bytes) = file.get(encrypt, key) { bytes } else { Vec::new() }
}

/// Returns the key of revisions 2 to 4.
fn md5_key(
    file: &File<'_>,
    encrypt: &Dictionary,
    id: &[u8],
    revision: u32,
    length: usize,
) -> Option<Vec<u8>> {
    let owner = bytes(file, encrypt, b"O");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "flags, written with or without a sign"
    )]
    let permissions = file.get(encrypt, b"P").as_number()? as i64 as u32;
    let mut hash = Md5::new();
    hash.update(PADDING);
    hash.update(owner.get(..32)?);
    hash.update(permissions.to_le_bytes());
    hash.update(id);
    if revision >= 4 && file.get(encrypt, b"EncryptMetadata") == Object::Bool(false) {
        hash.update([0xff; 4]);
    }
    let mut key: Vec<u8> = hash.finalize().to_vec();
    if revision >= 3 {
        for _ in 0..50 {
            key = Md5::digest(key.get(..length)?).to_vec();
        }
    }
    key.truncate(length);
    let user = bytes(file, encrypt, b"U");
    let is_valid = if revision == 2 {
        rc4(&key, &PADDING)? == user
    } else {
        let mut check = Md5::digest([&PADDING, id].concat()).to_vec();
        for round in 0..20 {
            let round_key: Vec<u8> = key.iter().map(|byte| byte ^ round).collect();
            check = rc4(&round_key, &check)?;
        }
        user.get(..BLOCK) == Some(check.as_slice())
    };
    is_valid.then_some(key)
}

/// Returns the key of revisions 5 and 6.
fn sha_key(file: &File<'_>, encrypt: &Dictionary, revision: u32) -> Option<Vec<u8>> {
    let user = bytes(file, encrypt, b"U");
    let hash =
        |salt: &[u8]| if revision == 5 { Some(Sha256::digest(salt).to_vec()) } else { hardened_hash(salt) };
    if hash(user.get(32..40)?)?.as_slice() != user.get(..32)? {
        return None;
    }
    let mut key = bytes(file, encrypt, b"UE").get(..32)?.to_vec();
    let (blocks, _) = Array::slice_as_chunks_mut(&mut key);
    let mut cipher =
        cbc::Decryptor::<Aes256>::new_from_slices(&hash(user.get(40..48)?)?, &[0; BLOCK]).ok()?;
    cipher.decrypt_blocks(blocks);
    Some(key)
}

/// Returns the hash of revision 6 for the empty password. It ends after at most 287 rounds.
fn hardened_hash(salt: &[u8]) -> Option<Vec<u8>> {
    let mut key = Sha256::digest(salt).to_vec();
    for round in 1.. {
        let mut data = key.repeat(64);
        let (blocks, _) = Array::slice_as_chunks_mut(&mut data);
        let mut cipher = cbc::Encryptor::<Aes128>::new_from_slices(key.get(..16)?, key.get(16..32)?).ok()?;
        cipher.encrypt_blocks(blocks);
        let sum: u32 = data.iter().take(BLOCK).copied().map(u32::from).sum();
        key = match sum % 3 {
            0 => Sha256::digest(&data).to_vec(),
            1 => Sha384::digest(&data).to_vec(),
            _ => Sha512::digest(&data).to_vec(),
        };
        if round >= 64 && i32::from(*data.last()?) <= round - 32 {
            break;
        }
    }
    key.truncate(32);
    Some(key)
}

fn rc4(key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let mut data = data.to_vec();
    <Rc4 as KeyInit>::new_from_slice(key).ok()?.apply_keystream(&mut data);
    Some(data)
}

/// Decrypts AES in CBC mode; the data starts with the initialisation vector and ends with padding.
fn aes<C>(key: &[u8], data: &[u8]) -> Option<Vec<u8>>
where
    C: cbc::cipher::BlockCipherDecrypt + KeyInit,
    cbc::Decryptor<C>: cbc::cipher::KeyIvInit + cbc::cipher::BlockModeDecrypt,
{
    let (vector, data) = data.split_at_checked(BLOCK)?;
    let mut data = data.to_vec();
    let (blocks, _) = Array::slice_as_chunks_mut(&mut data);
    let mut cipher = cbc::Decryptor::<C>::new_from_slices(key, vector).ok()?;
    cipher.decrypt_blocks(blocks);
    let whole = data.len() / BLOCK * BLOCK;
    let padding = data.get(..whole)?.last().map_or(0, |byte| usize::from(*byte));
    data.truncate(if padding <= BLOCK { whole - padding.min(whole) } else { whole });
    Some(data)
}
