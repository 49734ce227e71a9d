//! ZIP archives byte by byte, as no library would write them.

/// A member of an archive.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) name: Vec<u8>,
    /// The name in the local header, if it differs from that in the directory.
    pub(crate) local_name: Option<Vec<u8>>,
    /// The bytes in the archive.
    pub(crate) packed: Vec<u8>,
    pub(crate) size: u32,
    pub(crate) crc: u32,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) mode: u32,
}

impl Raw {
    /// A stored regular file.
    pub(crate) fn file(name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Self {
        let content = content.as_ref();
        Self {
            name: name.as_ref().to_vec(),
            local_name: None,
            packed: content.to_vec(),
            size: u32::try_from(content.len()).unwrap(),
            crc: crc32fast::hash(content),
            method: 0,
            flags: 0,
            mode: 0o100_644,
        }
    }

    /// A deflated regular file.
    pub(crate) fn deflated(name: &str, content: &[u8]) -> Self {
        use std::io::Write as _;
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(content).unwrap();
        Self { packed: encoder.finish().unwrap(), method: 8, ..Self::file(name, content) }
    }

    fn local(&self, out: &mut Vec<u8>) {
        let name = self.local_name.as_ref().unwrap_or(&self.name);
        out.extend(0x0403_4b50u32.to_le_bytes());
        put16(out, &[20, self.flags, self.method, 0, 0x21]);
        put32(out, &[self.crc, u32::try_from(self.packed.len()).unwrap(), self.size]);
        put16(out, &[u16::try_from(name.len()).unwrap(), 0]);
        out.extend(name);
        out.extend(&self.packed);
    }

    fn central(&self, out: &mut Vec<u8>, offset: u32) {
        out.extend(0x0201_4b50u32.to_le_bytes());
        // Made on Unix, so that the mode counts.
        put16(out, &[0x0314, 20, self.flags, self.method, 0, 0x21]);
        put32(out, &[self.crc, u32::try_from(self.packed.len()).unwrap(), self.size]);
        put16(out, &[u16::try_from(self.name.len()).unwrap(), 0, 0, 0, 0]);
        put32(out, &[self.mode << 16, offset]);
        out.extend(&self.name);
    }
}

fn put16(out: &mut Vec<u8>, values: &[u16]) {
    for value in values {
        out.extend(value.to_le_bytes());
    }
}

fn put32(out: &mut Vec<u8>, values: &[u32]) {
    for value in values {
        out.extend(value.to_le_bytes());
    }
}

/// An archive of these members.
pub(crate) fn archive(members: &[Raw]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut offsets = Vec::new();
    for member in members {
        offsets.push(u32::try_from(out.len()).unwrap());
        member.local(&mut out);
    }
    let start = u32::try_from(out.len()).unwrap();
    for (member, offset) in members.iter().zip(offsets) {
        member.central(&mut out, offset);
    }
    let size = u32::try_from(out.len()).unwrap() - start;
    end(&mut out, u16::try_from(members.len()).unwrap(), size, start);
    out
}

/// An archive in which every member of the directory refers to the same data.
pub(crate) fn overlapping(member: &Raw, count: u16) -> Vec<u8> {
    let mut out = Vec::new();
    member.local(&mut out);
    let start = u32::try_from(out.len()).unwrap();
    for number in 0..count {
        let name = format!("{}{number}", String::from_utf8_lossy(&member.name)).into_bytes();
        Raw { name, ..member.clone() }.central(&mut out, 0);
    }
    let size = u32::try_from(out.len()).unwrap() - start;
    end(&mut out, count, size, start);
    out
}

/// An archive in which one member is inside the data of another.
pub(crate) fn nested(name: &str, inner: &Raw) -> Vec<u8> {
    let mut data = Vec::new();
    inner.local(&mut data);
    let outer = Raw::file(name, &data);
    let mut out = Vec::new();
    outer.local(&mut out);
    let start = u32::try_from(out.len()).unwrap();
    outer.central(&mut out, 0);
    inner.central(&mut out, start - u32::try_from(data.len()).unwrap());
    let size = u32::try_from(out.len()).unwrap() - start;
    end(&mut out, 2, size, start);
    out
}

/// An archive with the records of ZIP64 at its end.
pub(crate) fn zip64(members: &[Raw], claimed: u64) -> Vec<u8> {
    let plain = archive(members);
    let end_at = plain.len() - 22;
    let word = |at: usize| u32::from_le_bytes(plain[at..at + 4].try_into().unwrap());
    let (size, start) = (word(end_at + 12), word(end_at + 16));
    let mut out = plain[..end_at].to_vec();
    let record = out.len() as u64;
    out.extend(0x0606_4b50u32.to_le_bytes());
    out.extend(44u64.to_le_bytes());
    put16(&mut out, &[45, 45]);
    put32(&mut out, &[0, 0]);
    for value in [claimed, claimed, u64::from(size), u64::from(start)] {
        out.extend(value.to_le_bytes());
    }
    out.extend(0x0706_4b50u32.to_le_bytes());
    put32(&mut out, &[0]);
    out.extend(record.to_le_bytes());
    put32(&mut out, &[1]);
    end(&mut out, u16::MAX, u32::MAX, u32::MAX);
    out
}

fn end(out: &mut Vec<u8>, count: u16, size: u32, start: u32) {
    out.extend(0x0605_4b50u32.to_le_bytes());
    put16(out, &[0, 0, count, count]);
    put32(out, &[size, start]);
    put16(out, &[0]);
}
