/** The parts of a message, in their order. */
import { Anchor, Group, Image, Text } from '@mantine/core';
import { IconAlertCircle, IconChevronDown, IconChevronRight, IconFile, IconInfoCircle, IconPlayerStop } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { memo, useState } from 'react';
import { useT } from '@/i18n';
import { visibleText } from '@/parts/format';
import { Markdown } from '@/parts/markdown';
import { imageAddress, type Item } from './answer';
import classes from './chat.module.css';
import { ToolCard } from './tool-card';

function Note({ item }: { item: Extract<Item, { kind: 'note' }> }) {
  const t = useT();
  const isBad = item.note === 'error' || item.isBad === true;
  const Shape = isBad ? IconAlertCircle : item.note === 'stopped' ? IconPlayerStop : IconInfoCircle;
  const words = { shortened: t('chat.shortened'), correction: t('chat.correction'), stopped: t('chat.stopped'), error: t('chat.failed'), text: '' }[item.note];
  const detail = item.note === 'correction' ? '' : visibleText(item.text.slice(0, 4000));
  return <div className={classes.note} data-bad={isBad} role="note"><Shape size={15} aria-hidden /><span>{[words, detail].filter(Boolean).join(': ')}</span></div>;
}

function Reasoning({ item }: { item: Extract<Item, { kind: 'reasoning' }> }) {
  const t = useT();
  const [isOpen, setOpen] = useState(false);
  return (
    <div>
      <button type="button" className={classes.toggle} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? <IconChevronDown size={13} aria-hidden /> : <IconChevronRight size={13} aria-hidden />}{t(item.isOpen ? 'chat.reasoningNow' : 'chat.reasoning')}
      </button>
      {isOpen && <div className={classes.reasoning}>{visibleText(item.text)}</div>}
    </div>
  );
}

function Picture({ source }: { source: unknown }) {
  const t = useT();
  const address = imageAddress(source);
  return address ? <Image src={address} alt={t('result.image')} fit="contain" mah={480} /> : <Text c="dimmed">{t('render.noImage')}</Text>;
}

/** A file that was added with the message, in the workspace beside the conversation. */
function FileLink({ path, chatId }: { path: string; chatId: string }) {
  return <Anchor component={Link} to="/chat/$id" params={{ id: chatId } as never} search={{ files: '1', file: path } as never} size="xs"><Group gap={4} wrap="nowrap" component="span"><IconFile size={13} aria-hidden />{visibleText(path)}</Group></Anchor>;
}

/** An item changes only while it is written; the others are not rendered again with each piece. */
const ItemView = memo(function ItemView({ item, isRecent, chatId }: { item: Item; isRecent: boolean; chatId: string }) {
  switch (item.kind) {
    case 'text': return <div className={classes.text}><Markdown text={item.text} /></div>;
    case 'reasoning': return <Reasoning item={item} />;
    case 'file': return <FileLink path={item.path} chatId={chatId} />;
    case 'image': return <Picture source={item.source} />;
    case 'note': return <Note item={item} />;
    case 'tool': return <ToolCard item={item} isRecent={isRecent} />;
  }
});

export function Items({ items, isRecent, chatId }: { items: Item[]; isRecent: boolean; chatId: string }) {
  return <>{items.map((item) => <ItemView key={item.key} item={item} isRecent={isRecent} chatId={chatId} />)}</>;
}
