//! A program as Go's linker leaves it, as far as its record of modules goes: an ELF file with the section
//! `.go.buildinfo`, which `go version -m` reads. There is no code in it.

const MAGIC: &[u8] = b"\xff Go buildinf:";
/// The strings follow the header, as they do since Go 1.18; before that came the size of pointers.
const INLINE: [u8; 2] = [8, 2];
/// What stands before and after the list of modules in memory. Only its length matters.
const MARK: [u8; 16] = [0x30; 16];
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
const ADDRESS: u64 = 0x40_0000;
const NAMES: &[u8] = b"\0.go.buildinfo\0.shstrtab\0";
const X86_64: u16 = 62;

/// A module that a program was built with.
pub type Module = (&'static str, &'static str);

/// A program for linux/amd64 made by that version of Go (`go1.22.1`) from a main module and others.
pub fn go(version: &str, main: Module, modules: &[Module]) -> Vec<u8> {
    let record = record(version, main, modules);
    let data = (HEADER + SEGMENT).next_multiple_of(16);
    let names = data + record.len();
    let sections = (names + NAMES.len()).next_multiple_of(8);
    let mut file = header(sections);
    file.extend(segment(data, record.len()));
    file.resize(data, 0);
    file.extend(&record);
    file.extend(NAMES);
    file.resize(sections, 0);
    file.extend([0; SECTION]);
    // Allocated and writable, as the linker has it; then the names of the sections.
    file.extend(section(1, 1, 3, ADDRESS + data as u64, data, record.len()));
    file.extend(section(15, 3, 0, 0, names, NAMES.len()));
    file
}

fn record(version: &str, (path, own): Module, modules: &[Module]) -> Vec<u8> {
    let mut list = format!("path\t{path}\nmod\t{path}\t{own}\t\n");
    for (path, version) in modules {
        list += &format!("dep\t{path}\t{version}\t\n");
    }
    list += "build\tGOARCH=amd64\nbuild\tGOOS=linux\n";
    let mut record = [MAGIC, &INLINE, &[0; 16]].concat();
    for text in [
        version.as_bytes(),
        &[&MARK, list.as_bytes(), &MARK].concat(),
    ] {
        let mut length = text.len();
        while length >= 0x80 {
            record.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        record.push(length as u8);
        record.extend(text);
    }
    record
}

fn header(sections: usize) -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    half(&mut header, &[2, X86_64]);
    word(&mut header, &[1]);
    long(&mut header, &[ADDRESS, HEADER as u64, sections as u64]);
    word(&mut header, &[0]);
    let sizes = [HEADER as u16, SEGMENT as u16, 1, SECTION as u16, 3, 2];
    half(&mut header, &sizes);
    header
}

/// The one segment, with everything up to the end of the record, to be read.
fn segment(data: usize, length: usize) -> Vec<u8> {
    let mut segment = Vec::new();
    word(&mut segment, &[1, 4]);
    let size = (data + length) as u64;
    long(&mut segment, &[0, ADDRESS, ADDRESS, size, size, 0x1000]);
    segment
}

fn section(name: u32, kind: u32, flags: u64, address: u64, offset: usize, size: usize) -> Vec<u8> {
    let mut section = Vec::new();
    word(&mut section, &[name, kind]);
    long(&mut section, &[flags, address, offset as u64, size as u64]);
    word(&mut section, &[0, 0]);
    long(&mut section, &[16, 0]);
    section
}

fn half(bytes: &mut Vec<u8>, values: &[u16]) {
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

fn word(bytes: &mut Vec<u8>, values: &[u32]) {
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

fn long(bytes: &mut Vec<u8>, values: &[u64]) {
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}
