/** Buckets and subtypes of tools, and the filter of the list; the tool picker uses them, too. */
export * from '@/parts/taxonomy';
