export * from '@/parts/source';
