import { describe, expect, it } from 'vitest';
import type { Hit } from '@/api/retrieval-types';
import { markedWords, readFilter, readUrls, share, splitMarked } from './query';

describe('filters', () => {
  it('are lines of names and values, or JSON', () => {
    expect(readFilter('')).toEqual({ filter: undefined });
    expect(readFilter('team = core\nyear=2024\n\nopen = true')).toEqual({ filter: { team: 'core', year: 2024, open: true } });
    expect(readFilter('zip = "01234"')).toEqual({ filter: { zip: '01234' } });
    expect(readFilter('{"range": {"key": "year", "min": 2020}}')).toEqual({ filter: { range: { key: 'year', min: 2020 } } });
  });
  it('that cannot be read say where', () => {
    expect(readFilter('team core')).toEqual({ error: 'team core' });
    expect(readFilter('{')).toHaveProperty('error');
  });
});

describe('marks', () => {
  it('leave out short words and compare beginnings', () => {
    expect(markedWords('How to install the installations?')).toEqual(['insta', 'installati']);
    expect(markedWords('Is the VPN on?')).toEqual(['vpn']);
    expect(splitMarked('Installing it: the installer.', 'install')).toEqual(['', 'Installing', ' it: the ', 'installer', '.']);
    expect(splitMarked('a+b (c)', '+(')).toEqual(['a+b (c)']);
    expect(splitMarked('Größen', 'größe')[1]).toBe('Größen');
  });
  it('compare hits with the best', () => {
    const hits = [{ score: 2 }, { score: 0.5 }, { score: -1 }] as Hit[];
    expect(hits.map((hit) => share(hit, hits))).toEqual([1, 0.25, 0]);
    expect(share({ score: 0 } as Hit, [{ score: 0 } as Hit])).toBe(0);
  });
});

it('reads addresses, one per line', () => {
  expect(readUrls('https://a.example/x\n\n https://b.example \nhttps://a.example/x\nftp://c nonsense')).toEqual({ urls: ['https://a.example/x', 'https://b.example'], wrong: ['ftp://c', 'nonsense'] });
});
