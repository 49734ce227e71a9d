/** A list of services: the name, what is known about it, buttons. The parts go below each other where there is no room. */
import { Box, Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Mono } from '@/parts/basics';

export function Lines({ label, children }: { label: string; children: ReactNode }) {
  return <Box component="ul" aria-label={label} m={0} p={0} style={{ listStyle: 'none' }}>{children}</Box>;
}

export function Line({ name, reference, children, actions }: { name: string; reference: string; children: ReactNode; actions: ReactNode }) {
  return (
    <Group component="li" gap="sm" py="sm" align="center" style={{ borderBottom: '1px solid var(--haft-border)' }}>
      <Box style={{ flex: '1 1 12rem', minWidth: 0, overflowWrap: 'anywhere' }}>
        <Text fw={500}>{name}</Text>
        <Text size="xs" c="dimmed"><Mono>{reference}</Mono></Text>
      </Box>
      <Box style={{ flex: '2 1 14rem', minWidth: 0, overflowWrap: 'anywhere' }}>{children}</Box>
      <Group gap="xs" wrap="nowrap">{actions}</Group>
    </Group>
  );
}
