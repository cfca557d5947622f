/* What `tombolo lab report` prints for people: the emulator's answer (lab/emulator_report.c) with units. */
#ifndef TB_CMD_LAB_REPORT_H
#define TB_CMD_LAB_REPORT_H

/* A line for each of the answer's. Lines that it does not know are printed as they are. */
void tb_lab_report_print(const char *answer);

#endif
