/* What launcher and agents tell each other about jobs that meet, in TB_CONTROL_BORDER: u8 enum tb_border_word, then as
 * it says. A link is the connection between the borders of two jobs (agent/border.h); its number is given by whoever
 * speaks of it first, the launcher or the agent, and those of agents have TB_BORDER_CAME_HERE set. */
#ifndef TB_JOB_BORDER_H
#define TB_JOB_BORDER_H

#define TB_BORDER_CAME_HERE 0x80000000u

enum tb_border_word {
    /* launcher to agent */
    TB_BORDER_OPEN,  /* port, 32 bytes key: whoever proves it may come */
    TB_BORDER_SHUT,  /* port: nobody may any more */
    TB_BORDER_DIAL,  /* link, u64 ns, 32 bytes key, text addresses with commas between them: connect there */
    TB_BORDER_NAMES, /* link, number of this telling, other job, count, of each range of its processes: first index
                      * here, count, first index there; count, of each range of ours that it may speak with: first,
                      * count. Replaces those before
                      */
    TB_BORDER_CLOSE, /* link */
    /* both ways */
    TB_BORDER_TELL, /* link, bytes: from launcher to launcher */
    /* agent to launcher */
    TB_BORDER_OPENED, /* port, text addresses; none: text why */
    TB_BORDER_CAME,   /* link, port: somebody has come to it */
    TB_BORDER_UP,     /* link: what was dialed is there */
    TB_BORDER_NAMED,  /* link, number of the NAMES that it has */
    TB_BORDER_ENDED,  /* link, text why */
    /* Between the two borders, in frames of the same kind; and TELL, without the link. */
    TB_BORDER_FRAME, /* u8 stream, envelope and payload as they are. Source and destination: as their own jobs have them
                      */
    TB_BORDER_ALIVE  /* nothing */
};

#endif
